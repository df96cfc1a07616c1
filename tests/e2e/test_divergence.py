"""A loss that becomes NaN stops the run with exit 8 and keeps the last good state."""
import math
import struct

from harness import checkpoints, metrics, tensors_of, write_idx


def finite(checkpoint):
    for name, (dtype, _, content) in tensors_of(checkpoint).items():
        if dtype == "F32":
            assert all(map(math.isfinite, struct.unpack(f"<{len(content) // 4}f", content))), name


def test_nan_stops_with_8_and_the_last_good_checkpoint_is_valid(trained_place):
    trained_place.write_recipe(optimizer="{name: sgd, lr: 1e20}", schedule="{name: constant}",
                               checkpoint_every="1 steps", keep=5)
    result = trained_place.train()
    assert result.code == 8, result
    assert "step" in result.err and "train.optimizer.lr" in result.err, result
    assert len([line for line in result.err.splitlines() if "rror" in line or "NaN" in line]) <= 2, result
    error = result.summary["error"]
    assert result.summary["status"] == "failed" and error["kind"] == "diverged"
    run = trained_place.run_directory()
    saved = checkpoints(run)
    assert saved, "the state before the failing step is kept"
    for path in saved.values():
        finite(path)
    assert max(saved) == metrics(run)[-1]["step"], "metrics end where the good state does"
    assert all(math.isfinite(line["loss"]) for line in metrics(run))
    again = trained_place.train()  # goes on from the good state, to the same end
    assert again.code == 8 and f"continuing after step {max(saved)}" in again.err, again


def test_a_lower_rate_starts_anew_from_the_advice(trained_place):
    trained_place.write_recipe(optimizer="{name: sgd, lr: 1e20}", schedule="{name: constant}")
    assert trained_place.train().code == 8
    result = trained_place.train("--set", "train.optimizer.lr=0.01")
    assert result.code == 0, result


def test_nan_in_bf16_on_one_device_too(place):
    write_idx(place.folder / "mnist", train=64)
    place.write_recipe(optimizer="{name: adam, lr: 1e20}", devices=1)
    result = place.train("--set", "train.precision=bf16")
    assert result.code == 8, result
