"""kill -9 and resume for every optimizer, precision and kind of state that a run may have: weights bit-equal to those of the
uninterrupted run."""
import json
import os
import random
import signal
import time

import pytest

from harness import Workplace, assert_same_training, checkpoints, is_running, wait_until, write_idx

SEED = int(os.environ.get("SKYTRAIN_TEST_SEED", time.time_ns() % 1_000_000))
OPTIMIZERS = {
    "sgd": "{name: sgd, lr: 0.02, momentum: 0.9, nesterov: true, weight_decay: 1e-4, no_decay: true}",
    "adam": "{name: adam, lr: 0.002}",
    "adamw": "{name: adamw, lr: 0.002, weight_decay: 0.05, groups: [{'conv1*': {lr_scale: 0.1}}]}",
    "lamb": "{name: lamb, lr: 0.01, weight_decay: 0.01}",
}
# Each optimizer meets each precision once, and each line of extras at least once.
EXTRAS = [
    ["train.schedule={name: one_cycle}", "train.ema=0.9"],
    ["train.schedule={name: plateau, patience: 0, gamma: 0.5}", "train.clip_norm=1"],
    ["train.schedule={name: cosine_restarts, period: 20 steps}", "train.mixup=0.4", "train.cutmix=1", "train.clip_value=0.1"],
    ["train.schedule={name: step, every: 15 steps}", "train.loss=bce", "train.activation_checkpointing=true"],
    ["train.schedule={name: polynomial, power: 2, warmup: 10 steps}",
     "train.loss_spike={threshold: 1, window: 10, action: skip}", "train.label_smoothing=0.1"],
    ["train.early_stop={metric: top1, patience: 50}", "checkpoint.best=top1", "train.memory_format=channels_last"],
]
CASES = [(optimizer, precision, EXTRAS[(3 * i + j) % len(EXTRAS)])
         for i, optimizer in enumerate(OPTIMIZERS) for j, precision in enumerate(("fp32", "bf16", "fp16"))]
DECIDED = ("batch", "slot", "precision", "memory_format")
# Everything that auto decides, decided once: a resume must not measure again.
CASES.append(("sgd", "auto", ["devices=auto", "train.slot=auto", "train.memory_format=auto"]))
CASES.append(("adamw", "auto", ["train.batch=auto", "memory_budget=16 MiB", "eval.batch=16"]))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_idx(tmp_path_factory.mktemp("data") / "mnist", train=240, test=60)


def arguments(optimizer, precision, extras):
    sets = [f"train.optimizer={OPTIMIZERS[optimizer]}", f"train.precision={precision}", *extras]
    return [part for text in sets for part in ("--set", text)]


@pytest.mark.parametrize("optimizer,precision,extras", CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_resumed_is_uninterrupted(place, data, optimizer, precision, extras, capsys):
    rng = random.Random(f"{SEED} {optimizer} {precision}")
    place.write_recipe(data=data, model="{name: convnet, classes: 10, width: 8}", length="epochs: 2", batch=8,
                       checkpoint_every="7 steps", eval_every="20 steps")
    sets = arguments(optimizer, precision, extras)
    kill_at = rng.randrange(8, 60)
    with place.start_training(*sets) as program:
        worker = program.wait_for_worker()
        wait_until(lambda: newest_step(place) >= kill_at - 7 or program.process.poll() is not None, f"step {kill_at}")
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)
        program.finish()
    result = place.train(*sets)
    assert result.code == 0, (SEED, result)

    # The uninterrupted run is told what auto decided for the other one: a measurement may come out differently.
    recipe = json.loads((place.run_directory() / "recipe.json").read_text())
    decided = {"devices": recipe["devices"], **{f"train.{key}": recipe["train"][key] for key in DECIDED}}
    assert "auto" not in decided.values() and None not in decided.values(), decided
    result = place.train("--runs", "reference", *sets, *(word for item in decided.items() for word in ("--set", "%s=%s" % item)))
    assert result.code == 0, (SEED, result)
    reference = Workplace(place.folder)
    reference.runs = place.folder / "reference"
    assert_same_training(place.run_directory(), reference.run_directory())


def newest_step(place):
    return max([0, *(step for run in place.run_directories() for step in checkpoints(run))])
