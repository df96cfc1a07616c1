"""Saving on a bad day: killed at each call to the disk, a disk that fails or is slow. Training goes on or ends with a clear
error, the newest valid checkpoint is found, and a run that goes on has the weights of an uninterrupted one."""
import errno
import os
import time

import pytest

from harness import (Workplace, assert_same_training, checkpoints, is_running, metrics, wait_until, write_idx)

CHECKPOINTS = "/checkpoints/step-"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_idx(tmp_path_factory.mktemp("data") / "mnist", train=160, test=40)


@pytest.fixture
def case(place, data):
    # 20 steps, saved after each fourth; the final state is the fifth checkpoint.
    place.write_recipe(data=data, model="{name: convnet, classes: 10, width: 8}", length="epochs: 1", batch=8, devices=1,
                       optimizer="{name: adam, lr: 0.002}", checkpoint_every="4 steps", eval_every="10 steps", keep=2)
    return place


@pytest.fixture(scope="module")
def reference(tmp_path_factory, data):
    """The same run without trouble, made once."""
    place = Workplace(tmp_path_factory.mktemp("reference"))
    place.write_recipe(data=data, model="{name: convnet, classes: 10, width: 8}", length="epochs: 1", batch=8, devices=1,
                       optimizer="{name: adam, lr: 0.002}", checkpoint_every="4 steps", eval_every="10 steps", keep=2)
    result = place.train()
    assert result.code == 0, result
    return place.run_directory()


def verify(place, run, code=0):
    result = place.run("checkpoint", "verify", run, "--json")
    assert result.code == code, result
    return [one["step"] for one in result.json_lines[0]["checkpoints"] if one["status"] == "valid"]


# The third save of five: two are there before it. A save: mkdir, open, write and fsync of the tensors, of the manifest, fsync
# of the folder, rename, fsync of the folder above.
PHASES = [(action, call, n) for action in ("kill", "killafter")
          for call, numbers in {"mkdir": [3], "open": [5, 6], "write": [5, 6], "fsync": [7, 8, 9], "rename": [3]}.items()
          for n in numbers]


@pytest.mark.parametrize("action,call,n", PHASES)
def test_killed_at_each_call_of_a_save(case, reference, shim, action, call, n):
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"{action}:{call}:{n}:{CHECKPOINTS}"})
    assert result.code == 7, (action, call, n, result)  # the worker died
    run = case.run_directory()
    valid = verify(case, run)
    assert max(valid) in (4, 8, 12), valid
    result = case.train()
    assert result.code == 0 and f"continuing after step {max(valid)}" in result.err, result
    assert_same_training(run, reference)
    assert not list((run / "checkpoints").glob("*.tmp"))


# A manifest, its file, a record of the lineage …: whatever is read first, the checkpoints stay what they are.
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 9])
def test_killed_while_it_restores(case, reference, shim, n):
    case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"kill:mkdir:4:{CHECKPOINTS}"})
    run = case.run_directory()
    assert max(verify(case, run)) == 12
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"kill:read:{n}:/checkpoints/"})
    assert result.code in (0, 7, -9), (n, result)  # it may read less often, or be the front program that dies
    if result.code == 0:
        return
    assert case.train().code == 0
    assert_same_training(run, reference)


def test_a_disk_that_cannot_be_read_is_no_reason_to_begin_again(case, reference, shim):
    case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"kill:mkdir:4:{CHECKPOINTS}"})
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"{errno.EIO}:read:1:/step-00000012/rank-0"})
    assert result.code == 5 and "step-00000012" in result.err and os.strerror(errno.EIO) in result.err, result
    assert case.train().code == 0
    assert_same_training(case.run_directory(), reference)


# The record of a generation is written before the first checkpoint of it counts.
@pytest.mark.parametrize("action", ["kill", "killafter"])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_killed_while_it_enters_the_lineage(case, reference, shim, action, call):
    case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"kill:mkdir:4:{CHECKPOINTS}"})
    run = case.run_directory()
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"{action}:{call}:1:/checkpoints/generation-"})
    assert result.code == 7, result
    result = case.train()
    assert result.code == 0 and "continuing after step 12" in result.err, result
    assert_same_training(run, reference)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_failing_call_of_the_lineage_costs_one_checkpoint(case, reference, shim, n):
    """The rename was made and the folder could not be synced: the run took its own record for another attempt's."""
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"once-{errno.EIO}:fsync:{n}:/checkpoints"})
    assert result.code == 0 and "training goes on: " in result.err, result
    run = case.run_directory()
    assert max(verify(case, run)) == 20
    assert_same_training(run, reference)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["mkdir", "open", "write", "fsync", "rename"])
def test_one_failing_call_costs_one_checkpoint(case, reference, shim, call, number):
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"once-{number}:{call}:3:{CHECKPOINTS}"})
    assert result.code == 0, result
    assert "could not be saved, training goes on: " in result.err and os.strerror(number) in result.err, result
    run = case.run_directory()
    assert max(verify(case, run)) == 20
    assert_same_training(run, reference)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
def test_a_disk_that_fails_for_good_ends_the_run_with_what_is_there(case, reference, shim, number):
    result = case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"{number}:fsync:7:{CHECKPOINTS}"})
    assert result.code == 5 and os.strerror(number) in result.err, result
    run = case.run_directory()
    assert max(verify(case, run)) == 8
    assert case.train().code == 0
    assert_same_training(run, reference)


def test_a_slow_disk_makes_no_saves_pile_up_and_does_not_hold_up_training(case, shim):
    # 500 KB of state: a second and a half each. Due by the clock: taken when the one before is done.
    rate = 300_000
    sets = ("--set", "checkpoint.every=0.2 s", "--set", "model={name: convnet, classes: 10, width: 48}", "--set",
            "train.epochs=30", "--set", "eval.every=30 epochs")
    env = {"LD_PRELOAD": str(shim), "SKYTRAIN_SLOW": f"{rate}:{CHECKPOINTS}"}
    with case.start_training(*sets, env=env) as program:
        folder = case.runs / "case"
        most = 0
        end = time.monotonic() + 60
        while program.process.poll() is None and time.monotonic() < end:
            most = max(most, len(list(folder.glob("*/checkpoints/*.tmp"))))
            time.sleep(0.02)
        result = program.finish()
    assert result.code == 0, result
    assert most == 1
    times = [line["t"] for line in metrics(case.run_directory())]
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert result.summary["saving"]["last_s"] > 1
    assert gaps[-2] < 0.8 * result.summary["saving"]["last_s"], gaps[-5:]  # steps did not wait for saves
    assert max(verify(case, case.run_directory())) == 600


def test_the_front_program_killed_during_a_save_leaves_nobody(case, reference, shim):
    env = {"LD_PRELOAD": str(shim), "SKYTRAIN_SLOW": f"200000:{CHECKPOINTS}"}
    with case.start_training(env=env) as program:
        worker = program.wait_for_worker()
        wait_until(lambda: list((case.runs / "case").glob("*/checkpoints/*.tmp")), "a save")
        program.process.kill()
        program.process.wait()
        wait_until(lambda: not is_running(worker), "the worker to end")
    run = case.run_directory()
    assert case.train().code == 0
    assert_same_training(run, reference)


def test_checkpoints_that_are_damaged_are_passed_over(case, reference, shim):
    # The last save never comes: the run is not complete, and has checkpoints of steps 16 and 12.
    case.train(env={"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"kill:mkdir:5:{CHECKPOINTS}"})
    run = case.run_directory()
    content = {step: path / "rank-0-of-1.safetensors" for step, path in checkpoints(run).items()}
    whole = content[16].read_bytes()

    def goes_on_from(step, said=None):
        result = case.run("train", "recipe.yaml", "--dry-run", "--json")
        assert result.code == 0 and result.summary["from_step"] == step, result
        if said is None:
            return
        verified = case.run("checkpoint", "verify", run)
        assert verified.code == 4 and said in verified.err, verified

    for size in range(0, len(whole), 4096):
        content[16].write_bytes(whole[:size])
        goes_on_from(12, f"is {size} bytes, manifest says {len(whole)}" if size < 2 * 4096 else None)
    for place in (3, 200, len(whole) // 2, len(whole) - 1):  # the length, the header, tensors
        content[16].write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1:])
        goes_on_from(12, "does not match its hash" if place else "")
    content[16].write_bytes(content[12].read_bytes())  # of another checkpoint: right in itself, and not here
    goes_on_from(12, "does not match its hash")
    content[16].unlink()
    goes_on_from(12, "is missing")
    result = case.train()
    assert result.code == 0 and "continuing after step 12" in result.err, result
    assert_same_training(run, reference)
