"""torch.amp.GradScaler over 300 updates with overflows at given steps. Family scaler."""
import numpy as np
import torch
import torch.nn as nn

from golden.common import bits

UPDATES = 300
# One update in `one_in` finds an overflow, and so do those of `burst`.
CASES = {
    "interval_7": dict(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=7, one_in=16,
                       burst=[100, 101, 102, 103]),
    "interval_20": dict(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=20, one_in=32,
                        burst=[0, 1, 150, 151]),
    "defaults": dict(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, one_in=64, burst=[]),
    "other_factors": dict(init_scale=1024.0, growth_factor=1.5, backoff_factor=0.25, growth_interval=7, one_in=16, burst=[]),
    # The scale does not grow beyond what fp32 can hold: it stays, and the count of good steps starts anew.
    "largest": dict(init_scale=2.0**120, growth_factor=2.0, backoff_factor=0.5, growth_interval=7, one_in=400, burst=[290]),
}


def overflow(case, update):
    """0, or the value that a gradient takes in this update: infinity, -infinity or NaN."""
    word = int(bits(11, 1, update)[0])
    if word % case["one_in"] != 0 and update not in case["burst"]:
        return 0.0
    return (float("inf"), float("-inf"), float("nan"))[(word >> 32) % 3]


def run(case):
    weights = [nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2, 2))]
    optimizer = torch.optim.SGD(weights, lr=0.0)
    scaler = torch.amp.GradScaler("cpu", **{k: v for k, v in case.items() if k not in ("one_in", "burst")})
    scaler.scale(torch.zeros(1))  # the scaler makes its scale when it is first used
    stepped = []
    optimizer.register_step_post_hook(lambda *_: stepped.append(True))
    out = {"overflow": [], "skipped": [], "scale": [], "growth_tracker": []}
    for update in range(UPDATES):
        bad = overflow(case, update)
        for w in weights:
            w.grad = torch.ones_like(w)
        if bad:
            weights[1].grad[1, 0] = bad
        stepped.clear()
        scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        out["overflow"].append(float(bool(bad)))
        out["skipped"].append(float(not stepped))
        out["scale"].append(state["scale"])
        out["growth_tracker"].append(float(state["_growth_tracker"]))
    assert out["skipped"] == out["overflow"]
    return out


def compute():
    golden = {f"scaler/{name}/{key}": np.array(values) for name, case in CASES.items() for key, values in run(case).items()}
    return golden, {"scaler": {"updates": UPDATES, "cases": CASES}}
