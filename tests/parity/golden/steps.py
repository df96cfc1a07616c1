"""Steps of the small models under the first optimizers and schedules: families one, fifty, slots, schedule, init, spread."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from golden import common
from golden.common import BATCH, SIGNAL_QUARTERS, fill_weights, mean_by_samples
from golden.models import CLASSES

STEPS, WARMUP, SLOT, SAMPLE, INIT_SEED = 50, 5, 3, 96, 7
# Some of the steps are clipped at this norm of the gradient, others are not.
CLIP_NORM = {"simplecnn": 8.0, "mlp": 0.45, "convnet": 1.9}

MODELS = {
    # Small, and not square where that can show a transposed axis; simplecnn is the real one of the MNIST recipe.
    "simplecnn": dict(channels=1, height=28, width=28, classes=10),
    "mlp": dict(channels=2, height=6, width=5, classes=7, hidden=[24, 16]),
    "convnet": dict(channels=3, height=12, width=20, classes=5, width_of_first_block=8),
}
OPTIMIZERS = {
    "sgd": dict(name="sgd", lr=0.005, momentum=0.9),
    "sgd_plain": dict(name="sgd", lr=0.05, momentum=0.0),
    "sgd_nesterov_decay": dict(name="sgd", lr=0.005, momentum=0.9, nesterov=True, weight_decay=5e-3),
    "adam": dict(name="adam", lr=3e-3),
    "adam_decay": dict(name="adam", lr=1e-3, beta1=0.8, beta2=0.99, eps=1e-7, weight_decay=1e-2),
}
SCHEDULES = {
    "constant": dict(name="constant", warmup=WARMUP, min_lr_factor=0.0),
    "cosine": dict(name="cosine", warmup=WARMUP, min_lr_factor=0.0),
    "cosine_floor": dict(name="cosine", warmup=WARMUP, min_lr_factor=0.1),
}
# (schedule, total steps, warm-up steps, factor of min_lr)
SCHEDULE_CASES = [(name, total, warmup, floor)
                  for name in ("constant", "cosine")
                  for total, warmup in ((1, 0), (2, 1), (10, 0), (10, 1), (10, 5), (10, 9), (10, 10), (938, 47))
                  for floor in ((0.0,) if name == "constant" else (0.0, 0.1))]


def make_model(name, dtype):
    model = CLASSES[name](**MODELS[name]).to(dtype)
    fill_weights(model)
    return model.train()


def make_optimizer(spec, params):
    shared = dict(lr=spec["lr"], weight_decay=spec.get("weight_decay", 0.0), foreach=False, fused=False)
    if spec["name"] == "sgd":
        return torch.optim.SGD(params, momentum=spec["momentum"], nesterov=spec.get("nesterov", False), **shared)
    betas = (spec.get("beta1", 0.9), spec.get("beta2", 0.999))
    return torch.optim.Adam(params, betas=betas, eps=spec.get("eps", 1e-8), **shared)


def closed_form(name, base, t, total, warmup, floor):
    """Learning rate of optimizer step t (from 1): the definition that the scheduler classes below must match."""
    if t <= warmup:
        return base * t / warmup
    if name == "constant":
        return base
    low = floor * base
    return low + (base - low) * 0.5 * (1 + math.cos(math.pi * (t - 1 - warmup) / (total - warmup)))


def make_scheduler(name, optimizer, base, total, warmup, floor):
    """LinearLR then ConstantLR or CosineAnnealingLR, as a Python user chains them. They cannot say a warm-up of one
    step (LinearLR divides by total_iters) nor one as long as the run: there LambdaLR with the closed form."""
    s = torch.optim.lr_scheduler
    if 0 < warmup < 2 or warmup >= total:
        return s.LambdaLR(optimizer, lambda i: closed_form(name, base, min(i + 1, total), total, warmup, floor) / base)
    tail = (s.ConstantLR(optimizer, factor=1.0, total_iters=0) if name == "constant" else
            s.CosineAnnealingLR(optimizer, T_max=total - warmup, eta_min=floor * base))
    if warmup == 0:
        return tail
    ramp = s.LinearLR(optimizer, start_factor=1 / warmup, end_factor=1.0, total_iters=warmup - 1)
    return s.SequentialLR(optimizer, [ramp, tail], milestones=[warmup])

def sampled(tensor):
    return common.sampled(tensor, SAMPLE)


def batch(step, spec, dtype):
    return common.batch(step, spec["channels"], spec["height"], spec["width"], spec["classes"], dtype)


def state(model):
    return {k: v for k, v in model.state_dict().items()}


def one_step(model_name, optimizer_name):
    spec = OPTIMIZERS[optimizer_name]
    model = make_model(model_name, torch.float32)
    optimizer = make_optimizer(spec, model.parameters())
    images, labels = batch(0, MODELS[model_name], torch.float32)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    gradients = {n: sampled(p.grad) for n, p in model.named_parameters()}
    optimizer.step()
    prefix = f"one/{model_name}/{optimizer_name}"
    out = {f"{prefix}/loss": np.array([loss.item()])}
    out.update({f"{prefix}/gradient/{n}": g for n, g in gradients.items()})
    out.update({f"{prefix}/state/{n}": sampled(v) for n, v in state(model).items()})
    return out


def fifty_steps(model_name, optimizer_name, schedule_name):
    spec, schedule = OPTIMIZERS[optimizer_name], SCHEDULES[schedule_name]
    model = make_model(model_name, torch.float64)
    optimizer = make_optimizer(spec, model.parameters())
    scheduler = make_scheduler(schedule["name"], optimizer, spec["lr"], STEPS, schedule["warmup"],
                               schedule["min_lr_factor"])
    losses, rates = [], []
    for step in range(STEPS):
        images, labels = batch(step, MODELS[model_name], torch.float64)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    prefix = f"fifty/{model_name}/{optimizer_name}/{schedule_name}"
    out = {f"{prefix}/loss": np.array(losses), f"{prefix}/lr": np.array(rates)}
    out.update({f"{prefix}/state/{n}": sampled(v) for n, v in state(model).items()})
    return out


def slotted_steps(model_name, optimizer_name):
    spec = OPTIMIZERS[optimizer_name]
    model = make_model(model_name, torch.float64)
    optimizer = make_optimizer(spec, model.parameters())
    losses, norms = [], []
    for step in range(STEPS):
        images, labels = batch(step, MODELS[model_name], torch.float64)
        optimizer.zero_grad()
        before = {n: b.clone() for n, b in model.named_buffers()}
        after = {n: [] for n in before}
        total = 0.0
        for x, y in zip(images.split(SLOT), labels.split(SLOT)):
            with torch.no_grad():
                for n, b in model.named_buffers():
                    b.copy_(before[n])
            loss = F.cross_entropy(model(x), y, reduction="sum") / BATCH
            loss.backward()
            total += loss.item()
            for n, b in model.named_buffers():
                after[n].append(b.clone())
        with torch.no_grad():
            for n, b in model.named_buffers():
                b.copy_(mean_by_samples(after[n], images.split(SLOT)) if b.is_floating_point() else after[n][0])
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM[model_name], foreach=False).item())
        optimizer.step()
        losses.append(total)
    assert min(norms) < CLIP_NORM[model_name] < max(norms), (model_name, optimizer_name, min(norms), max(norms))
    prefix = f"slots/{model_name}/{optimizer_name}"
    out = {f"{prefix}/loss": np.array(losses), f"{prefix}/norm": np.array(norms)}
    out.update({f"{prefix}/state/{n}": sampled(v) for n, v in state(model).items()})
    return out


def schedule_case(name, total, warmup, floor):
    base = 0.05
    parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.SGD([parameter], lr=base)
    scheduler = make_scheduler(name, optimizer, base, total, warmup, floor)
    rates = []
    for t in range(1, total + 1):
        rates.append(optimizer.param_groups[0]["lr"])
        expected = closed_form(name, base, t, total, warmup, floor)
        assert abs(rates[-1] - expected) <= 1e-12 * base, (name, total, warmup, floor, t, rates[-1], expected)
        parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        scheduler.step()
    return {f"schedule/{name}_{total}_{warmup}_{floor}": np.array(rates)}


def initialisation(model_name):
    torch.manual_seed(INIT_SEED)
    return {f"init/{model_name}/{n}": sampled(v) for n, v in state(CLASSES[model_name](**MODELS[model_name])).items()}


def spread(model_name):
    values = {}
    for seed in range(20 if model_name == "simplecnn" else 200):
        torch.manual_seed(seed)
        for name, p in CLASSES[model_name](**MODELS[model_name]).named_parameters():
            values.setdefault(name, []).append(p.detach().double().flatten().numpy())
    out = {}
    for name, parts in values.items():
        v = np.concatenate(parts)
        out[f"spread/{model_name}/{name}"] = np.array([np.abs(v).max(), v.mean(), v.std()])
    return out


def compute():
    golden = {}
    for model_name in MODELS:
        golden.update(initialisation(model_name))
        golden.update(spread(model_name))
        for optimizer_name in OPTIMIZERS:
            golden.update(one_step(model_name, optimizer_name))
            golden.update(slotted_steps(model_name, optimizer_name))
            for schedule_name in SCHEDULES:
                golden.update(fifty_steps(model_name, optimizer_name, schedule_name))
    for case in SCHEDULE_CASES:
        golden.update(schedule_case(*case))
    cases = {"steps": STEPS, "batch": BATCH, "slot": SLOT, "clip_norm": CLIP_NORM, "sample": SAMPLE, "init_seed": INIT_SEED,
             "signal_quarters": SIGNAL_QUARTERS, "models": MODELS, "optimizers": OPTIMIZERS, "schedules": SCHEDULES}
    return golden, cases
