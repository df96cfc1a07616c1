"""A worker that dies is replaced, and the next one goes on from the last state in memory, or from the disk."""
import os
import re
import signal
import time

import pytest

from harness import Workplace, assert_same_training, checkpoints, is_running, metrics, wait_until, write_idx

STEPS = 6000


@pytest.fixture
def case(place):
    write_idx(place.folder / "mnist", train=512, test=16)
    place.write_recipe(model="{name: mlp, classes: 10, hidden: [64]}", length=f"steps: {STEPS}", batch=8, devices=1,
                       checkpoint_every="200000 steps", eval_every=f"{STEPS // 2} steps", max_restarts=3)
    return place


def kill_worker(program, number=signal.SIGKILL):
    worker = program.wait_for_worker()
    os.kill(worker, number)
    wait_until(lambda: not is_running(worker), "the worker to die")
    return worker


def last_step(place):
    lines = metrics(place.run_directory()) if place.run_directories() else []
    return lines[-1]["step"] if lines else 0


def test_the_next_worker_goes_on_from_memory(case):
    """Nothing is on the disk: without the state in memory all would be trained again."""
    longer = ("--set", "train.steps=24000")
    with case.start_training(*longer) as program:
        wait_until(lambda: last_step(case) > 0, "the first step")
        time.sleep(2.5)  # the state is kept in memory every other second
        assert program.process.poll() is None, "the run is over too early for this test: let it be longer"
        before = last_step(case)
        assert not checkpoints(case.run_directory())
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first) or program.process.poll() is not None, "the next worker")
        result = program.finish()
    assert result.code == 0, result
    assert re.search(r"SIGKILL \(9\).*: started again \(1 of elastic.max_restarts 3\)", result.err), result
    continued = int(re.search(r"continuing after step (\d+) of", result.err).group(1))
    assert 0 < continued <= before + 100
    reference = Workplace(case.folder)
    reference.runs = case.folder / "reference"
    assert reference.train("--runs", "reference", *longer).code == 0
    assert_same_training(case.run_directory(), reference.run_directory())


def test_the_newer_of_memory_and_disk_counts(case):
    with case.start_training("--set", "checkpoint.every=100 steps") as program:
        for _ in range(3):
            wait_until(lambda: program.process.poll() is not None or
                       (case.run_directories() and checkpoints(case.run_directory())), "a checkpoint")
            time.sleep(0.3)
            newest = max(checkpoints(case.run_directory()))
            first = kill_worker(program)
            wait_until(lambda: program.find_worker() not in (None, first) or program.process.poll() is not None, "the next")
            before = last_step(case)
            wait_until(lambda: program.process.poll() is not None or last_step(case) > newest, "it to go on")
        result = program.finish()
    assert result.code == 0, result
    steps = [int(step) for step in re.findall(r"continuing after step (\d+) of", result.err)]
    assert len(steps) == 3 and steps == sorted(steps) and steps[0] >= 100, steps
    assert [line["step"] for line in metrics(case.run_directory())] == list(range(1, STEPS + 1)), before


def test_the_budget_ends_the_run_which_can_be_resumed(case):
    with case.start_training("--set", "elastic.max_restarts=1", "--set", "checkpoint.every=50 steps") as program:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first), "the next worker")
        newest = last_step(case)
        wait_until(lambda: last_step(case) > newest + 100, "it to go on")
        kill_worker(program)
        result = program.finish()
    assert result.code == 7, result
    assert "after 1 restart" in result.err, result
    assert case.train().code == 0
    assert [line["step"] for line in metrics(case.run_directory())] == list(range(1, STEPS + 1))


def test_a_stop_while_the_worker_is_being_replaced(case):
    with case.start_training("--set", "checkpoint.every=50 steps") as program:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        first = kill_worker(program)
        wait_until(lambda: program.find_worker() not in (None, first), "the next worker")
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 75, result
    assert result.summary["saved_step"] >= 50
    assert case.train().code == 0
    assert [line["step"] for line in metrics(case.run_directory())] == list(range(1, STEPS + 1))


@pytest.mark.parametrize("who", ["skytrain", "both"])
def test_nothing_is_left_when_the_front_program_is_killed(case, who):
    before = set(os.listdir("/dev/shm"))
    with case.start_training("--set", "checkpoint.every=50 steps") as program:
        wait_until(lambda: case.run_directories() and checkpoints(case.run_directory()), "a checkpoint")
        worker = program.find_worker()
        if who == "both":
            os.kill(worker, signal.SIGKILL)
        program.process.kill()
        wait_until(lambda: not is_running(worker), "the worker to save and end", timeout=20)
    assert set(os.listdir("/dev/shm")) <= before
    result = case.train()
    assert result.code == 0, result
    assert [line["step"] for line in metrics(case.run_directory())] == list(range(1, STEPS + 1))
