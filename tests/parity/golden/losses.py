"""Losses alone: value and gradient with respect to the logits. Family loss."""
import numpy as np
import torch
import torch.nn.functional as F

from golden.common import bits, unit

ROWS, OUTPUTS = 8, 7
LOSSES = {
    "cross_entropy": dict(name="cross_entropy", label_smoothing=0.0),
    "cross_entropy_smoothed": dict(name="cross_entropy", label_smoothing=0.1),
    "cross_entropy_half": dict(name="cross_entropy", label_smoothing=0.5),
    "mse": dict(name="mse", target="dense"),
    "mse_one_hot": dict(name="mse", target="one_hot"),
    "bce": dict(name="bce", target="dense"),
    "bce_one_hot": dict(name="bce", target="one_hot"),
}
# Logits are this times a number in [-1, 1): large enough that exp() without its tricks would overflow, in the last case.
SCALES = (1.0, 20.0, 2000.0)


def dense_targets(spec, rows, outputs, first_row=0):
    """Row r, output j: u = unit(7, r * outputs + j); mse takes u, bce (u + 1) / 2."""
    u = unit(7, rows * outputs, first_row * outputs).reshape(rows, outputs)
    return torch.from_numpy(u if spec["name"] == "mse" else (u + 1.0) / 2.0)


def loss_of(spec, logits, labels, first_row=0):
    """The mean over the rows (and, for mse and bce, over the outputs). Row r of `logits` has the targets of row
    first_row + r."""
    if spec["name"] == "cross_entropy":
        return F.cross_entropy(logits, labels, label_smoothing=spec.get("label_smoothing", 0.0))
    if spec["target"] == "one_hot":
        target = F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    else:
        target = dense_targets(spec, *logits.shape, first_row).to(logits.dtype)
    function = F.mse_loss if spec["name"] == "mse" else F.binary_cross_entropy_with_logits
    return function(logits, target)


def compute():
    golden = {}
    labels = torch.from_numpy((bits(9, ROWS) % np.uint64(OUTPUTS)).astype(np.int64))
    for name, spec in LOSSES.items():
        for scale in SCALES:
            logits = torch.from_numpy(scale * unit(8, ROWS * OUTPUTS).reshape(ROWS, OUTPUTS)).requires_grad_()
            loss = loss_of(spec, logits, labels)
            loss.backward()
            golden[f"loss/{name}/{scale:g}/value"] = np.array([loss.item()])
            golden[f"loss/{name}/{scale:g}/gradient"] = logits.grad.numpy()
    return golden, {"losses": {"rows": ROWS, "outputs": OUTPUTS, "scales": SCALES, "cases": LOSSES}}
