"""Ctrl-C and SIGTERM: the first saves and exits 75 with the command that goes on, the second stops at once with 130."""
import os
import random
import signal
import subprocess
import time

import pytest

from harness import (assert_same_training, checkpoints, is_running, metrics, resume_command_in,
                     wait_until, write_idx, Workplace)

SIGNALS = [signal.SIGINT, signal.SIGTERM]
NOTICES = [signal.SIGTERM, signal.SIGUSR1]
STEPS, FIRST = 2000, 50  # of the run, and of its first checkpoint


@pytest.fixture
def long_place(place):
    """A run of a second or more."""
    write_idx(place.folder / "mnist", train=512)
    place.write_recipe(length=f"steps: {STEPS}", batch=8, checkpoint_every=f"{FIRST} steps", eval_every="1000 steps")
    return place


def wait_for_checkpoint(place, program):
    wait_until(lambda: program.process.poll() is not None or
               (place.run_directories() and checkpoints(place.run_directory())), "the first checkpoint")


def run_command(words, cwd):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_saves_and_the_printed_command_goes_on(long_place, number):
    with long_place.start_training() as program:
        wait_for_checkpoint(long_place, program)
        worker = program.find_worker()
        program.signal(number)
        result = program.finish()
    assert result.code == 75, result
    assert not is_running(worker)
    summary = result.summary
    assert summary["status"] == "interrupted"
    run = long_place.run_directory()
    assert max(checkpoints(run)) == summary["steps"] >= FIRST
    command = resume_command_in(result.err)
    code, out, err = run_command(command, long_place.folder)
    assert code == 0, (command, err)
    assert f"continuing after step {summary['steps']}" in err
    uninterrupted = Workplace(long_place.folder)
    uninterrupted.runs = long_place.folder / "reference"
    assert long_place.train("--runs", "reference").code == 0
    assert_same_training(run, uninterrupted.run_directory())


# A stopped worker cannot save, so the first request waits until the second one comes.
@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_stops_at_once(long_place, number):
    with long_place.start_training() as program:
        wait_for_checkpoint(long_place, program)
        worker = program.find_worker()
        os.kill(worker, signal.SIGSTOP)
        program.signal(number)
        time.sleep(0.3)
        assert program.process.poll() is None, "the first request waits for the worker"
        begin = time.monotonic()
        program.signal(number)
        result = program.finish()
        assert time.monotonic() - begin < 2
    assert result.code == 130, result
    assert not is_running(worker), "nothing is left behind"
    assert result.summary["error"]["kind"] == "aborted"
    result = long_place.train()  # and the run can still be gone on with
    assert result.code == 0, result
    assert [line["step"] for line in metrics(long_place.run_directory())] == list(range(1, STEPS + 1))


# From the worker's birth until LibTorch is loaded and the first step is done.
@pytest.mark.parametrize("number", [signal.SIGINT, *NOTICES])
@pytest.mark.parametrize("delay", [0, 0.05, 0.2, 0.4])
def test_during_start_up(long_place, delay, number):
    with long_place.start_training() as program:
        program.wait_for_worker()
        time.sleep(delay)
        program.signal(number)
        result = program.finish()
    assert result.code == 75, result
    assert len(result.err.splitlines()) < 15, result
    code, _, err = run_command(resume_command_in(result.err), long_place.folder)
    assert code == 0, err
    assert [line["step"] for line in metrics(long_place.run_directory())] == list(range(1, STEPS + 1))


@pytest.mark.parametrize("number", [signal.SIGINT, *NOTICES])
def test_during_an_evaluation(place, number):
    write_idx(place.folder / "mnist", train=64, test=4000, side=20)
    place.write_recipe(model="{name: convnet, classes: 10, width: 32}", length="steps: 24", eval_every="12 steps",
                       checkpoint_every="11 steps")
    with place.start_training() as program:
        wait_for_checkpoint(place, program)  # one step before the evaluation, which takes half a second or more
        time.sleep(0.1)
        begin = time.monotonic()
        program.signal(number)
        result = program.finish()
        assert time.monotonic() - begin < 5
    assert result.code == 75, result
    run = place.run_directory()
    assert not metrics(run, "evaluations"), "it was interrupted in its first evaluation"
    result = place.train()
    assert result.code == 0, result
    assert [line["step"] for line in metrics(run, "evaluations")] == [12, 24], "the evaluation is made up for"
    assert [line["step"] for line in metrics(run)] == list(range(1, 25))


# A shell sends Ctrl-C to the whole foreground group: the worker must not take it as its own.
def test_a_signal_to_the_process_group_is_one_request(long_place):
    with long_place.start_training(start_new_session=True) as program:
        wait_for_checkpoint(long_place, program)
        os.killpg(program.process.pid, signal.SIGINT)
        result = program.finish()
    assert result.code == 75, result


def test_at_any_moment_of_many_attempts(place):
    """Start-up, restoring, the first step, saves, evaluations, the end: each attempt is stopped somewhere, some of them twice."""
    seed = int(os.environ.get("SKYTRAIN_TEST_SEED", random.randrange(1_000_000)))
    print(f"SKYTRAIN_TEST_SEED={seed}")
    chance = random.Random(seed)
    write_idx(place.folder / "mnist", train=512)
    place.write_recipe(length="steps: 12000", batch=8, checkpoint_every="400 steps", eval_every="700 steps", devices=1)
    codes = []
    for _ in range(60):
        with place.start_training() as program:
            worker = program.wait_for_worker()
            if program.process.poll() is None:
                time.sleep(chance.uniform(0, 0.9))
                program.signal(chance.choice([signal.SIGINT, *NOTICES]))
                if chance.random() < 0.2:
                    time.sleep(chance.uniform(0.11, 0.2))
                    program.signal(chance.choice(SIGNALS))
            result = program.finish()
        codes.append(result.code)
        assert result.code in (0, 75, 130), (seed, codes, result)
        assert not worker or not is_running(worker), "nothing is left behind"
        if result.code == 75 and result.summary["steps"] > 0:
            assert result.summary["samples_to_repeat"] == 0, (seed, result)
        if place.run_directories() and checkpoints(place.run_directory()):
            assert place.run("checkpoint", "verify", place.run_directory()).code == 0, (seed, codes)
        if result.code == 0:
            break
    else:
        result = place.train()
        assert result.code == 0, (seed, codes, result)
    uninterrupted = Workplace(place.folder)
    uninterrupted.runs = place.folder / "reference"
    assert place.train("--runs", "reference").code == 0
    assert_same_training(place.run_directory(), uninterrupted.run_directory())
