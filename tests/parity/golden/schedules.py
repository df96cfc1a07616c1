"""Learning rates (and momenta) of 200 steps under each schedule of torch.optim.lr_scheduler. Family schedule."""
import warnings

import numpy as np
import torch
import torch.nn as nn
from torch.optim import lr_scheduler as s

from golden.common import unit

TOTAL, BASE = 200, 0.05
# Keys are those of the recipe; lengths are optimizer steps, counted from the end of the warm-up; min_lr is absolute.
SCHEDULES = {
    "constant": dict(name="constant"),
    "step_50": dict(name="step", every=50, gamma=0.1),
    "step_1": dict(name="step", every=1, gamma=0.97),
    "multistep": dict(name="multistep", milestones=[60, 120, 160], gamma=0.2),
    "multistep_edges": dict(name="multistep", milestones=[1, 2, 189], gamma=0.5),
    "cosine": dict(name="cosine", min_lr=0.0),
    "cosine_floor": dict(name="cosine", min_lr=0.005),
    "restarts_50": dict(name="cosine_restarts", period=50, period_factor=1, min_lr=0.0),
    "restarts_20_doubling": dict(name="cosine_restarts", period=20, period_factor=2, min_lr=0.001),
    "linear": dict(name="linear", min_lr=0.0),
    "linear_floor": dict(name="linear", min_lr=0.005),
    "polynomial_1": dict(name="polynomial", power=1.0),
    "polynomial_2": dict(name="polynomial", power=2.0),
    "polynomial_half": dict(name="polynomial", power=0.5),
    "plateau": dict(name="plateau", gamma=0.5, patience=3, cooldown=0, threshold=1e-4, min_lr=0.0),
    "plateau_cooldown": dict(name="plateau", gamma=0.1, patience=5, cooldown=4, threshold=1e-4, min_lr=1e-4),
    # Drops soon reach 1e-8, below which ReduceLROnPlateau makes none.
    "plateau_impatient": dict(name="plateau", gamma=0.1, patience=0, cooldown=0, threshold=1e-4, min_lr=0.0),
}
ONE_CYCLES = {
    "one_cycle": dict(shape="cosine", three_phase=False, rise=0.3, start_factor=25.0, final_factor=1e4, base_momentum=0.85,
                      max_momentum=0.95),
    "one_cycle_linear": dict(shape="linear", three_phase=False, rise=0.25, start_factor=10.0, final_factor=100.0,
                             base_momentum=0.8, max_momentum=0.9),
    "one_cycle_three": dict(shape="cosine", three_phase=True, rise=0.4, start_factor=25.0, final_factor=1e4,
                            base_momentum=0.85, max_momentum=0.95),
    "one_cycle_linear_three": dict(shape="linear", three_phase=True, rise=0.3, start_factor=10.0, final_factor=100.0,
                                   base_momentum=0.85, max_momentum=0.95),
}
# One cycle has its own way up.
CASES = {f"{name}_warmup_{warmup}": dict(spec, base=BASE, warmup=warmup)
         for name, spec in SCHEDULES.items() for warmup in (0, 1, 10)}
CASES.update({name: dict(spec, name="one_cycle", base=BASE, warmup=0) for name, spec in ONE_CYCLES.items()})


def metric(k):
    """The k-th value that a plateau schedule sees: falls in stairs of 25 steps with noise; on every third stair it only
    creeps down, by less than the threshold a step."""
    level = 2.0 * 0.8**(k // 25)
    if k // 25 % 3 == 2:
        return level * (1.0 - 5e-5 * (k % 25))
    return level * (1.0 + 0.02 * float(unit(10, 1, k)[0]) - 0.002 * (k % 25))


def scheduler_of(spec, optimizer, base, steps):
    name = spec["name"]
    if name == "constant":
        return s.ConstantLR(optimizer, factor=1.0, total_iters=0)
    if name == "step":
        return s.StepLR(optimizer, spec["every"], spec["gamma"])
    if name == "multistep":
        return s.MultiStepLR(optimizer, spec["milestones"], spec["gamma"])
    if name == "cosine":
        return s.CosineAnnealingLR(optimizer, T_max=steps, eta_min=spec["min_lr"])
    if name == "cosine_restarts":
        return s.CosineAnnealingWarmRestarts(optimizer, spec["period"], spec["period_factor"], spec["min_lr"])
    if name == "linear":
        return s.LinearLR(optimizer, start_factor=1.0, end_factor=spec["min_lr"] / base, total_iters=steps)
    if name == "polynomial":
        return s.PolynomialLR(optimizer, total_iters=steps, power=spec["power"])
    if name == "one_cycle":
        return s.OneCycleLR(optimizer, max_lr=base, total_steps=steps, pct_start=spec["rise"],
                            anneal_strategy={"cosine": "cos", "linear": "linear"}[spec["shape"]],
                            base_momentum=spec["base_momentum"], max_momentum=spec["max_momentum"],
                            div_factor=spec["start_factor"], final_div_factor=spec["final_factor"],
                            three_phase=spec["three_phase"])
    return s.ReduceLROnPlateau(optimizer, mode="min", factor=spec["gamma"], patience=spec["patience"],
                               threshold=spec["threshold"], threshold_mode="rel", cooldown=spec["cooldown"],
                               min_lr=spec["min_lr"], eps=1e-8)


def run(optimizer, scheduler, steps, plateau):
    """Rate and momentum that each of the steps uses; the scheduler moves after each. optimizer: SGD of one parameter."""
    group, rates, momenta = optimizer.param_groups[0], [], []
    for k in range(steps):
        rates.append(group["lr"])
        momenta.append(group["momentum"])
        optimizer.step()
        if k + 1 < steps:
            scheduler.step(metric(k)) if plateau else scheduler.step()
    return rates, momenta


def sgd(base):
    return torch.optim.SGD([nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=base, momentum=0.9)


def sequential(spec, base, warmup):
    """Warm-up and schedule as a Python user chains them."""
    optimizer = sgd(base)
    ramp = s.LinearLR(optimizer, start_factor=1 / warmup, end_factor=1.0, total_iters=warmup - 1)
    tail = scheduler_of(spec, optimizer, base, TOTAL - warmup)
    with warnings.catch_warnings():  # SequentialLR itself passes the epoch, which PyTorch deprecates
        warnings.simplefilter("ignore", UserWarning)
        return run(optimizer, s.SequentialLR(optimizer, [ramp, tail], milestones=[warmup]), TOTAL, plateau=False)[0]


def compute_case(spec):
    """A warm-up of w steps rises linearly: step t of it, from 0, has (t + 1) / w of the base. Then the schedule runs over the
    other steps. This is SequentialLR, checked where that can say it: LinearLR divides by w - 1, a plateau needs metrics."""
    base, warmup, plateau = spec["base"], spec["warmup"], spec["name"] == "plateau"
    optimizer = sgd(base)
    rates, momenta = run(optimizer, scheduler_of(spec, optimizer, base, TOTAL - warmup), TOTAL - warmup, plateau)
    rates = [base * (t + 1) / warmup for t in range(warmup)] + rates
    if warmup > 1 and not plateau:
        assert np.abs(np.subtract(rates, sequential(spec, base, warmup))).max() <= 1e-12 * base, spec
    out = {"lr": rates}
    if spec["name"] == "one_cycle":
        out["momentum"] = momenta
    if plateau:
        out["metric"] = [metric(k) for k in range(TOTAL)]
        assert sum(b < a for a, b in zip(rates[warmup:], rates[warmup + 1:])) >= 3, spec
        assert rates[-1] == spec["min_lr"] or spec["min_lr"] == 0, (spec, rates[-1])
    return out


def compute():
    golden = {f"schedule/{name}/{key}": np.array(values)
              for name, spec in CASES.items() for key, values in compute_case(spec).items()}
    return golden, {"schedule": {"total": TOTAL, "cases": CASES}}
