#!/usr/bin/env python3
"""Makes goldens.safetensors: what Python PyTorch computes for the models, optimizers and schedules of SkyTrain.

    .deps/peers/bin/python tests/parity/make_goldens.py            # writes the file beside this script
    .deps/peers/bin/python tests/parity/make_goldens.py --check    # recomputes and compares with the committed file

Weights and pictures come from a hash that both sides compute exactly (`unit` below, SplitMix64), so the file holds
results only. Pixels are (byte - 128) / 128: exact in fp32 and fp64. `parity_test.cc` is the reader.

  one/<model>/<optimizer>/…       one step in fp32 at a constant learning rate: loss, sampled gradients and weights
  fifty/<model>/<optimizer>/<schedule>/…   50 steps in fp64: loss and learning rate of each step, sampled final state
  slots/<model>/<optimizer>/…     50 steps in fp64 whose batches are computed as slots of 3, 3 and 2 samples and clipped:
                                  the gradient is that of the mean over all samples, batch norm sees a slot, its running
                                  statistics become the mean over the slots of what each made of the previous ones
  schedule/<case>                 learning rates alone, for more warm-ups and lengths
  init/<model>/<parameter>        default initialisation after torch.manual_seed(INIT_SEED), in fp32, sampled
  spread/<model>/<parameter>      largest magnitude, mean and standard deviation over many default initialisations

"Sampled" is every stride-th element (at most SAMPLE), preceded by sum / sqrt(count) and the 2-norm of all elements:
both move by about as much as a typical element does, so one tolerance serves all.
The optimizers are torch.optim's single-tensor ones, not the fused kernels, so that the two sides differ in code.
"""
import argparse
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, WARMUP, BATCH, SLOT, SAMPLE, INIT_SEED = 50, 5, 8, 3, 96, 7
# Some of the steps are clipped at this norm of the gradient, others are not.
CLIP_NORM = {"simplecnn": 8.0, "mlp": 0.45, "convnet": 1.9}

MODELS = {
    # Small, and not square where that can show a transposed axis; simplecnn is the real one of the MNIST recipe.
    "simplecnn": dict(channels=1, height=28, width=28, classes=10),
    "mlp": dict(channels=2, height=6, width=5, classes=7, hidden=[24, 16]),
    "convnet": dict(channels=3, height=12, width=20, classes=5, width_of_first_block=8),
}
# Quarters of a picture that are its class's (the rest is noise), by channels: the more parameters, the less.
SIGNAL_QUARTERS = {1: 1, 2: 3, 3: 3}
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


def splitmix64(x):
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def bits(stream, count):
    """`count` 64-bit words of stream number `stream`."""
    return splitmix64(np.uint64(stream) * np.uint64(1 << 32) + np.arange(count, dtype=np.uint64))


def unit(stream, count):
    """float64 in [-1, 1), multiples of 2**-52."""
    return (bits(stream, count) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def fan_in(shape):
    return int(np.prod(shape[1:]))


def fill_weights(model):
    """Parameter number k comes from stream 1000 + k, scaled by 1/sqrt(fan in) of its layer; batch norm near default."""
    fan = 1
    with torch.no_grad():
        for k, (name, p) in enumerate(model.named_parameters()):
            u = unit(1000 + k, p.numel()).reshape(p.shape)
            if ".weight" in name and p.dim() > 1:
                fan = fan_in(p.shape)
            if name.startswith("bn"):
                value = 1.0 + 0.25 * u if name.endswith("weight") else 0.125 * u
            else:
                value = u * (1.0 / math.sqrt(fan))
            p.copy_(torch.from_numpy(value))


def batch(step, spec, dtype):
    """Batch of step `step`: a picture of its class plus noise, as bytes; one label in four is random, so that the loss
    stays well above zero and no gradient dies out within the 50 steps."""
    signal = SIGNAL_QUARTERS[spec["channels"]]
    pixels = spec["channels"] * spec["height"] * spec["width"]
    labels = (bits(1, (step + 1) * BATCH)[-BATCH:] % np.uint64(spec["classes"])).astype(np.int64)
    drawn = bits(4, (step + 1) * BATCH)[-BATCH:]
    given = np.where(drawn % np.uint64(4) == 0, (drawn >> np.uint64(32)) % np.uint64(spec["classes"]),
                     labels.astype(np.uint64)).astype(np.int64)
    prototypes = (bits(2, spec["classes"] * pixels) % np.uint64(256)).reshape(spec["classes"], pixels)
    noise = (bits(3, (step + 1) * BATCH * pixels)[-BATCH * pixels:] % np.uint64(256)).reshape(BATCH, pixels)
    byte = (prototypes[labels] * np.uint64(signal) + noise * np.uint64(4 - signal)) // np.uint64(4)
    images = (byte.astype(np.float64) - 128.0) / 128.0
    shape = (BATCH, spec["channels"], spec["height"], spec["width"])
    return torch.from_numpy(images).to(dtype).reshape(shape), torch.from_numpy(given)


class SimpleCNN(nn.Module):
    def __init__(self, channels, height, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3)
        self.fc1 = nn.Linear(32 * (height - 2) * (width - 2), classes)

    def forward(self, x):
        return self.fc1(torch.flatten(F.relu(self.conv1(x)), 1))


class Mlp(nn.Module):
    def __init__(self, channels, height, width, classes, hidden):
        super().__init__()
        widths = [channels * height * width, *hidden, classes]
        self.layers = [f"fc{i + 1}" for i in range(len(widths) - 1)]
        for name, a, b in zip(self.layers, widths, widths[1:]):
            setattr(self, name, nn.Linear(a, b))

    def forward(self, x):
        x = torch.flatten(x, 1)
        for name in self.layers[:-1]:
            x = F.relu(getattr(self, name)(x))
        return getattr(self, self.layers[-1])(x)


class ConvNet(nn.Module):
    def __init__(self, channels, height, width, classes, width_of_first_block):
        super().__init__()
        w = width_of_first_block
        for i, (a, b) in enumerate(((channels, w), (w, w), (w, 2 * w), (2 * w, 2 * w)), 1):
            setattr(self, f"conv{i}", nn.Conv2d(a, b, 3, padding=1, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        self.fc = nn.Linear(2 * w * (height // 4) * (width // 4), classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.bn3(self.conv3(x)))
        x = F.max_pool2d(F.relu(self.bn4(self.conv4(x))), 2)
        return self.fc(torch.flatten(x, 1))


CLASSES = {"simplecnn": SimpleCNN, "mlp": Mlp, "convnet": ConvNet}


def make_model(name, dtype):
    model = CLASSES[name](**MODELS[name]).to(dtype)
    fill_weights(model)
    return model.train()


def make_optimizer(spec, params):
    common = dict(lr=spec["lr"], weight_decay=spec.get("weight_decay", 0.0), foreach=False, fused=False)
    if spec["name"] == "sgd":
        return torch.optim.SGD(params, momentum=spec["momentum"], nesterov=spec.get("nesterov", False), **common)
    betas = (spec.get("beta1", 0.9), spec.get("beta2", 0.999))
    return torch.optim.Adam(params, betas=betas, eps=spec.get("eps", 1e-8), **common)


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
    flat = tensor.detach().double().flatten().numpy()
    stride = max(1, -(-flat.size // SAMPLE))
    return np.concatenate([[math.fsum(flat) / math.sqrt(flat.size), math.sqrt(math.fsum(flat * flat))], flat[::stride]])


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
                b.copy_(torch.stack(after[n]).mean(0) if b.is_floating_point() else after[n][0])
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
    metadata = {
        "torch": torch.__version__,
        "cases": json.dumps({"steps": STEPS, "batch": BATCH, "slot": SLOT, "clip_norm": CLIP_NORM, "sample": SAMPLE,
                             "init_seed": INIT_SEED, "signal_quarters": SIGNAL_QUARTERS, "models": MODELS,
                             "optimizers": OPTIMIZERS, "schedules": SCHEDULES}),
    }
    return {k: np.ascontiguousarray(v, dtype=np.float64) for k, v in golden.items()}, metadata


def compare(golden, path):
    worst = {}
    with safe_open(path, "np") as old:
        if set(old.keys()) != set(golden):
            sys.exit(f"{path}: other cases than this script makes")
        for key, value in golden.items():
            kind = key.split("/")[0]
            difference = np.abs(value - old.get_tensor(key)).max()
            if difference >= worst.get(kind, (0, ""))[0]:
                worst[kind] = (difference, key)
    limits = {"one": 1e-5, "fifty": 1e-9, "slots": 1e-9, "schedule": 1e-12, "init": 1e-6, "spread": 1e-6}
    failed = False
    for kind, (difference, key) in sorted(worst.items()):
        failed |= difference > limits[kind]
        print(f"{kind:9} largest difference {difference:.3g} (limit {limits[kind]:g}) at {key}")
    sys.exit(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=os.path.join(HERE, "goldens.safetensors"))
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    golden, metadata = compute()
    if args.check:
        compare(golden, args.out)
    save_file(golden, args.out, metadata)
    print(f"{args.out}: {len(golden)} arrays, {os.path.getsize(args.out):,} bytes")


if __name__ == "__main__":
    main()
