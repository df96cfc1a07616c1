"""200 steps of a small model in fp64 under each feature of the trainer. Family train."""
import copy
import fnmatch
import functools

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from golden import common, schedules
from golden.common import BATCH, fill_weights, mean_by_samples
from golden.losses import loss_of
from golden.models import CLASSES
from golden.optimizers import make_optimizer

STEPS, SAMPLE = 200, 32
MODELS = {
    "normed_mlp": dict(channels=2, height=3, width=5, classes=7, hidden=[19, 11]),
    "convnet": dict(channels=3, height=8, width=12, classes=5, width_of_first_block=6),
}
LAST_BIAS = {"normed_mlp": "fc3.bias", "convnet": "fc.bias"}
# The first group whose shell pattern matches a parameter's name holds for it: the first layer's weight has the optimizer's
# decay. A scale of 0 freezes.
GROUPS = {
    "normed_mlp": [dict(match="fc1.*", lr_scale=0.1), dict(match="fc*.weight", weight_decay=0.2),
                   dict(match="norm1.bias", lr_scale=0.0)],
    "convnet": [dict(match="conv1.*", lr_scale=0.1), dict(match="conv*", weight_decay=0.2),
                dict(match="bn2.bias", lr_scale=0.0)],
}
FIRST_LAYER = {name: groups[:1] for name, groups in GROUPS.items()}
ADAM = dict(beta1=0.9, beta2=0.999, eps=1e-8)
SGD_MOMENTUM = dict(name="sgd", lr=0.01, momentum=0.9)
CROSS_ENTROPY = dict(name="cross_entropy", label_smoothing=0.0)
LAMB = dict(name="lamb", lr=0.005, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0)

# What a case leaves out: no groups, one slot a step, no clipping, cross entropy, constant rate, no EMA.
CASES = {
    "sgd": dict(optimizer=dict(name="sgd", lr=0.05)),
    "sgd_momentum": dict(optimizer=SGD_MOMENTUM),
    "sgd_nesterov_decay": dict(optimizer=dict(SGD_MOMENTUM, nesterov=True, weight_decay=5e-3)),
    "sgd_groups": dict(optimizer=dict(SGD_MOMENTUM, nesterov=True, weight_decay=0.05), no_decay=True, groups=GROUPS),
    "adam": dict(optimizer=dict(name="adam", lr=1e-3, **ADAM)),
    "adam_decay": dict(optimizer=dict(name="adam", lr=1e-3, beta1=0.8, beta2=0.99, eps=1e-7, weight_decay=1e-2)),
    "adamw": dict(optimizer=dict(name="adamw", lr=1e-3, weight_decay=0.01, **ADAM)),
    "adamw_groups": dict(optimizer=dict(name="adamw", lr=1e-3, weight_decay=0.5, **ADAM), no_decay=True, groups=GROUPS),
    "lamb": dict(optimizer=LAMB),
    "lamb_decay": dict(optimizer=dict(LAMB, weight_decay=0.01)),
    "lamb_groups": dict(optimizer=dict(LAMB, weight_decay=0.5), no_decay=True, groups=GROUPS),
    "lamb_zero": dict(optimizer=LAMB, zero=LAST_BIAS),
    "clip_norm": dict(optimizer=SGD_MOMENTUM, clip_norm={"normed_mlp": 1.0, "convnet": 3.5}),
    "clip_value": dict(optimizer=SGD_MOMENTUM, clip_value={"normed_mlp": 0.05, "convnet": 0.1}),
    "slots": dict(optimizer=SGD_MOMENTUM, slot=3),
    "ema": dict(optimizer=SGD_MOMENTUM, ema=0.99),
    "label_smoothing": dict(optimizer=SGD_MOMENTUM, loss=dict(name="cross_entropy", label_smoothing=0.1)),
    "mse": dict(optimizer=dict(SGD_MOMENTUM, lr=0.05), loss=dict(name="mse", target="dense")),
    "mse_one_hot": dict(optimizer=dict(SGD_MOMENTUM, lr=0.05), loss=dict(name="mse", target="one_hot")),
    "bce": dict(optimizer=dict(SGD_MOMENTUM, lr=0.05), loss=dict(name="bce", target="dense")),
    "bce_one_hot": dict(optimizer=dict(SGD_MOMENTUM, lr=0.05), loss=dict(name="bce", target="one_hot")),
    "all": dict(optimizer=dict(name="adamw", lr=2e-3, weight_decay=0.05, **ADAM), no_decay=True, groups=FIRST_LAYER,
                slot=3, clip_norm={"normed_mlp": 1.0, "convnet": 3.5}, ema=0.99,
                loss=dict(name="cross_entropy", label_smoothing=0.1),
                schedule=dict(name="cosine", warmup=10, min_lr=0.0)),
}


def make_model(name, case):
    model = CLASSES[name](**MODELS[name]).double()
    fill_weights(model)
    if "zero" in case:
        with torch.no_grad():
            model.get_parameter(case["zero"][name]).zero_()
    return model.train()


def parameter_groups(name, model, case):
    """One group a parameter. no_decay takes the decay from parameters of one dimension: biases and norms."""
    spec, groups = case["optimizer"], []
    for parameter_name, p in model.named_parameters():
        own = next((g for g in case.get("groups", {}).get(name, []) if fnmatch.fnmatchcase(parameter_name, g["match"])), {})
        decay = 0.0 if case.get("no_decay") and p.dim() == 1 else own.get("weight_decay", spec.get("weight_decay", 0.0))
        scale = own.get("lr_scale", 1.0)
        groups.append(dict(params=[p], lr=spec["lr"] * scale, weight_decay=decay, scale=scale))
    return groups


def accumulate(model, images, labels, loss, slot, first_row):
    """Leaves the gradient of the mean over all samples of the step; returns that mean. Batch norm sees a slot; its running
    statistics become the mean over the slots, by their samples, of what each made of the previous ones."""
    before = [b.clone() for b in model.buffers()]
    after = [[] for _ in before]
    total, done = 0.0, 0
    for x, y in zip(images.split(slot), labels.split(slot)):
        with torch.no_grad():
            for b, old in zip(model.buffers(), before):
                b.copy_(old)
        part = loss(model(x), y, first_row + done) * (len(x) / len(images))
        part.backward()
        total, done = total + part.item(), done + len(x)
        for b, seen in zip(model.buffers(), after):
            seen.append(b.clone())
    with torch.no_grad():
        for b, seen in zip(model.buffers(), after):
            b.copy_(mean_by_samples(seen, images.split(slot)) if b.is_floating_point() else seen[0])
    return total


def clip(model, name, case, out):
    """out: lists by name, to which what the clipping saw is added."""
    if "clip_norm" in case:
        limit = case["clip_norm"][name]
        out.setdefault("norm", []).append(torch.nn.utils.clip_grad_norm_(model.parameters(), limit, foreach=False).item())
    if "clip_value" in case:
        limit = case["clip_value"][name]
        beyond = [(p.grad.abs() > limit).double().sum().item() for p in model.parameters()]
        out.setdefault("clipped", []).append(sum(beyond))
        torch.nn.utils.clip_grad_value_(model.parameters(), limit, foreach=False)


def train(name, case_name):
    case, spec = CASES[case_name], MODELS[name]
    model = make_model(name, case)
    optimizer = make_optimizer(case["optimizer"], parameter_groups(name, model, case))
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(case["ema"])) if "ema" in case else None
    rates = None
    if "schedule" in case:
        rates = schedules.compute_case(dict(case["schedule"], base=case["optimizer"]["lr"]))["lr"]
    loss = functools.partial(loss_of, case.get("loss", CROSS_ENTROPY))
    out = {"loss": []}
    for step in range(STEPS):
        images, labels = common.batch(step, spec["channels"], spec["height"], spec["width"], spec["classes"], torch.float64)
        if rates is not None:
            for group in optimizer.param_groups:
                group["lr"] = rates[step] * group["scale"]
            out.setdefault("lr", []).append(rates[step])
        optimizer.zero_grad()
        out["loss"].append(accumulate(model, images, labels, loss, case.get("slot", BATCH), step * BATCH))
        clip(model, name, case, out)
        optimizer.step()
        if averaged is not None:
            averaged.update_parameters(model)
        if case["optimizer"]["name"] == "lamb":
            out.setdefault("trust", []).append([optimizer.state[p]["trust"] for p in model.parameters()])
    check(name, case_name, out, sum(p.numel() for p in model.parameters()))
    prefix = f"train/{name}/{case_name}"
    golden = {f"{prefix}/{key}": np.array(values) for key, values in out.items()}
    golden.update({f"{prefix}/state/{n}": common.sampled(v, SAMPLE) for n, v in model.state_dict().items()})
    if averaged is not None:
        golden.update({f"{prefix}/ema/{n}": common.sampled(v, SAMPLE) for n, v in averaged.module.state_dict().items()})
    return golden


def check(name, case_name, out, parameters):
    """That the case tests what it says: some steps are clipped and others not; a bias of zeros has the ratio 1."""
    if "norm" in out:
        limit = CASES[case_name]["clip_norm"][name]
        clipped = sum(norm > limit for norm in out["norm"])
        assert STEPS // 10 < clipped < STEPS - STEPS // 10, (name, case_name, clipped, min(out["norm"]), max(out["norm"]))
    if "clipped" in out:
        share = sum(out["clipped"]) / STEPS / parameters
        assert 0.02 < share < 0.98, (name, case_name, share)
    if "zero" in CASES[case_name]:
        assert out["trust"][0][-1] == 1.0 and out["trust"][1][-1] != 1.0, (name, case_name)


def model_cases():
    """The models as the reader needs them: with the names of the parameters in the order of their streams."""
    cases = copy.deepcopy(MODELS)
    for name, spec in cases.items():
        spec["parameters"] = [[n, list(p.shape)] for n, p in make_model(name, {}).named_parameters()]
    return cases


def compute():
    golden = {}
    for name in MODELS:
        for case_name in CASES:
            golden.update(train(name, case_name))
    return golden, {"train": {"steps": STEPS, "batch": BATCH, "sample": SAMPLE, "models": model_cases(), "cases": CASES}}
