"""A worker that dies is replaced, and the next one goes on from the last state in memory, or from the disk."""
import json
import os
import pathlib
import re
import signal
import time

import pytest

from harness import Workplace, assert_same_training, checkpoints, is_running, logged_steps, metrics, newest_state, wait_until, write_idx

ENDLESS = 100_000_000  # steps: a run lasts as long as the test needs, on any machine; without a schedule the first N are the same


@pytest.fixture
def case(place):
    write_idx(place.folder / "mnist", train=512, test=16)
    place.write_recipe(model="{name: mlp, classes: 10, hidden: [64]}", length=f"steps: {ENDLESS}", batch=8, devices=1,
                       schedule="{name: constant}", checkpoint_every=f"{ENDLESS} steps", eval_every=f"{ENDLESS} steps",
                       max_restarts=3)
    return place


def kill_worker(program, number=signal.SIGKILL):
    worker = program.wait_for_worker()
    os.kill(worker, number)
    wait_until(lambda: not is_running(worker), "the worker to die")
    return worker


def last_step(place):
    return max(logged_steps(place.run_directory()), default=0) if place.run_directories() else 0


def stop(program):
    program.signal(signal.SIGTERM)
    result = program.finish()
    assert result.code == 75, result
    return result


def goes_on(place):
    """The run can be resumed, and each of its steps was done once."""
    before = last_step(place)
    with place.start_training() as program:
        wait_until(lambda: program.process.poll() is not None or last_step(place) > before, "it to go on", every=0.02)
        result = stop(program)
    steps = [line["step"] for line in metrics(place.run_directory())]
    assert steps == list(range(1, result.summary["steps"] + 1))


def test_the_next_worker_goes_on_from_memory(case):
    """Nothing is on the disk: without the state in memory all would be trained again."""
    with case.start_training() as program:
        wait_until(lambda: program.process.poll() is not None or last_step(case) > 0, "the first step")
        time.sleep(2.5)  # the state is kept in memory every other second
        before = last_step(case)
        assert not checkpoints(case.run_directory())
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first) or program.process.poll() is not None, "the next worker")
        wait_until(lambda: program.process.poll() is not None or last_step(case) > before + 100, "it to go on", every=0.1)
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 75 and result.summary["samples_to_repeat"] == 0, result
    assert re.search(r"SIGKILL \(9\).*: started again \(1 of elastic.max_restarts 3\)", result.err), result
    continued = int(re.search(r"continuing after step (\d+) of", result.err).group(1))
    assert 0 < continued <= before + 1000
    reference = Workplace(case.folder)
    reference.runs = case.folder / "reference"
    whole = reference.train("--runs", "reference", "--set", f"train.steps={result.summary['steps']}")
    assert whole.code == 0, whole
    assert newest_state(case.run_directory()) == newest_state(reference.run_directory())
    ours, theirs = ([(line["step"], line["loss"]) for line in metrics(place.run_directory())] for place in (case, reference))
    assert ours == theirs


def test_the_newer_of_memory_and_disk_counts(case):
    with case.start_training("--set", "checkpoint.every=100 steps") as program:
        for _ in range(3):
            wait_until(lambda: program.process.poll() is not None or
                       (case.run_directories() and checkpoints(case.run_directory())), "a checkpoint")
            time.sleep(0.3)
            first = kill_worker(program)
            before = last_step(case)
            wait_until(lambda: program.find_worker() not in (None, first) or program.process.poll() is not None, "the next")
            wait_until(lambda: program.process.poll() is not None or last_step(case) > before + 10, "it to go on", every=0.02)
        result = stop(program)
    steps = [int(step) for step in re.findall(r"continuing after step (\d+) of", result.err)]
    assert len(steps) == 3 and steps == sorted(steps) and steps[0] >= 100, steps
    assert [line["step"] for line in metrics(case.run_directory())] == list(range(1, result.summary["steps"] + 1))


def test_the_budget_ends_the_run_which_can_be_resumed(case):
    with case.start_training("--set", "elastic.max_restarts=1", "--set", "checkpoint.every=50 steps") as program:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first), "the next worker")
        newest = last_step(case)
        wait_until(lambda: program.process.poll() is not None or last_step(case) > newest + 100, "it to go on", every=0.02)
        kill_worker(program)
        result = program.finish()
    assert result.code == 7, result
    assert "after 1 restart" in result.err, result
    goes_on(case)


def test_a_stop_while_the_worker_is_being_replaced(case):
    with case.start_training("--set", "checkpoint.every=50 steps") as program:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first), "the next worker")
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 75, result
    assert result.summary["saved_step"] >= 50
    goes_on(case)


def snapshots():
    """Descriptors of any process that hold the memory of the last state."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if "memfd:skytrain-snapshot" in os.readlink(path):
                found.append(str(path))
        except OSError:
            pass
    return found


def test_what_auto_decided_stays_decided(case):
    """The next worker measured again, and might have taken another batch and precision."""
    case.write_recipe(model="{name: mlp, classes: 10, hidden: [64]}", length=f"steps: {ENDLESS}", batch="auto", devices="auto",
                      schedule="{name: constant}", checkpoint_every="20 steps", eval_every=f"{ENDLESS} steps", max_restarts=3)
    with case.start_training("--set", "train.precision=auto") as program:
        wait_until(lambda: program.process.poll() is not None or
                   (case.run_directories() and checkpoints(case.run_directory())), "a checkpoint")
        decided = (case.run_directory() / "recipe.json").read_text()
        os.sched_setaffinity(program.process.pid, {min(os.sched_getaffinity(0))})
        before = last_step(case)
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first) or program.process.poll() is not None, "the next")
        wait_until(lambda: program.process.poll() is not None or last_step(case) > before + 20, "it to go on", every=0.02)
        result = stop(program)
    assert (case.run_directory() / "recipe.json").read_text() == decided
    assert "started again" in result.err


def test_of_two_attempts_at_once_one_ends(case):
    """A machine that was thought dead goes on beside the one that took its place."""
    longer = ("--set", "checkpoint.every=300 steps")
    with case.start_training(*longer) as first:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        os.kill(first.find_worker(), signal.SIGSTOP)
        run = case.run_directory()
        (run / "lock").unlink()  # as on a disk of many machines, without locks
        with case.start_training(*longer) as second:
            wait_until(lambda: second.process.poll() is not None or len(list(run.glob("checkpoints/generation-*.json"))) > 1,
                       "the second one to save")
            os.kill(first.find_worker(), signal.SIGCONT)
            result = first.finish()
            assert result.code == 7, result
            assert "another attempt has gone on with this run" in result.err and "started again" not in result.err, result
            second.signal(signal.SIGTERM)
            other = second.finish()
    # Both wrote the metrics; the checkpoints are what this is about.
    assert other.code == 75, other
    newest = max(checkpoints(run))
    generations = {json.loads((path / "manifest.json").read_text())["generation"] for path in checkpoints(run).values()}
    assert newest == other.summary["saved_step"] and 1 in generations, (newest, generations)


@pytest.mark.parametrize("who", ["skytrain", "both"])
def test_nothing_is_left_when_the_front_program_is_killed(case, who):
    before = snapshots()
    with case.start_training("--set", "checkpoint.every=50 steps") as program:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        worker = program.find_worker()
        assert len(snapshots()) > len(before)
        if who == "both":
            os.kill(worker, signal.SIGKILL)
        program.process.kill()
        wait_until(lambda: not is_running(worker), "the worker to save and end", timeout=20)
    wait_until(lambda: len(snapshots()) <= len(before), "the memory to be given back", timeout=5)
    goes_on(case)
