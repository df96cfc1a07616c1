"""SIGTERM and SIGUSR1 announce a kill: the state is saved if that fits into the time left, and the run says before the kill
what will be trained again if it does not."""
import errno
import os
import re
import signal
import time

import pytest

from harness import Workplace, assert_same_training, checkpoints, is_running, logged_steps, wait_until, write_idx

CHECKPOINTS = "/checkpoints/step-"
STATE_MB = 2.4  # of the model below with adam


@pytest.fixture
def case(place):
    write_idx(place.folder / "mnist", train=512, test=16)
    place.write_recipe(model="{name: mlp, classes: 10, hidden: [512, 256]}", length="steps: 200000", batch=8, devices=1,
                       optimizer="{name: adam, lr: 0.0001}", checkpoint_every="200000 steps", eval_every="200000 steps")
    return place


def slow(shim, bytes_per_second):
    return {"LD_PRELOAD": str(shim), "SKYTRAIN_SLOW": f"{int(bytes_per_second)}:{CHECKPOINTS}"}


def wait_for_steps(place, program, steps):
    wait_until(lambda: program.process.poll() is not None or
               (place.run_directories() and len(logged_steps(place.run_directory())) >= steps), "steps")


def interrupt(place, program, number):
    """The result, and the seconds that it took."""
    worker = program.find_worker()
    begin = time.monotonic()
    program.signal(number)
    result = program.finish()
    seconds = time.monotonic() - begin
    assert result.code == 75, result
    assert not is_running(worker)
    return result, seconds


def verified(place):
    result = place.run("checkpoint", "verify", place.run_directory(), "--json")
    return result, [one["step"] for one in result.json_lines[0]["checkpoints"] if one["status"] == "valid"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_state_that_fits_is_saved_and_nothing_is_repeated(case, number):
    with case.start_training("--set", "elastic.grace=20 s") as program:
        wait_for_steps(case, program, 20)
        result, seconds = interrupt(case, program, number)
    assert "no sample will be trained again" in result.err
    assert result.summary["samples_to_repeat"] == 0
    assert result.summary["saved_step"] == result.summary["steps"] == max(checkpoints(case.run_directory()))
    assert seconds < 5


def test_on_a_slow_disk_the_save_is_given_up_in_time(case, shim):
    """The first save of the run: how long it takes is not known before."""
    with case.start_training("--set", "elastic.grace=4 s", env=slow(shim, STATE_MB * 1e6 / 12)) as program:
        wait_for_steps(case, program, 20)
        result, seconds = interrupt(case, program, signal.SIGTERM)
    assert seconds < 4, "the kill would have come"
    assert re.search(r"the checkpoint of step \d+ was given up: there was no time left when .* were written", result.err), result
    assert re.search(r"stopped after step \d+; nothing was saved: .* samples will be trained again", result.err), result
    assert not list(case.run_directory().glob("checkpoints/step-*"))
    assert result.summary["samples_to_repeat"] == result.summary["samples"] > 0


def test_what_is_known_not_to_fit_is_not_begun_and_the_last_one_counts(case, shim):
    sets = ("--set", "elastic.grace=2 s", "--set", "checkpoint.every=200 steps")
    with case.start_training(*sets, env=slow(shim, STATE_MB * 1e6 / 4)) as program:
        wait_until(lambda: program.process.poll() is not None or
                   (case.run_directories() and checkpoints(case.run_directory())), "the first checkpoint")
        saved = max(checkpoints(case.run_directory()))
        # The next save has just begun, and it takes four seconds.
        result, seconds = interrupt(case, program, signal.SIGUSR1)
    assert seconds < 2
    assert re.search(r"a checkpoint takes about .* here, and .* (are|is) left: none is taken of step \d+", result.err), result
    assert f"the newest checkpoint is of step {saved}" in result.err, result
    assert result.summary["saved_step"] == saved
    assert result.summary["samples_to_repeat"] == 8 * (result.summary["steps"] - saved) > 0
    found, valid = verified(case)
    assert saved in valid, found


def test_a_save_that_is_nearly_done_is_finished_first(case, shim):
    """Neither it and the newest state fit, nor the newest state alone, but what is left of it does."""
    sets = ("--set", "elastic.grace=5 s", "--set", "checkpoint.every=50 steps")
    with case.start_training(*sets, env=slow(shim, STATE_MB * 1e6 / 6)) as program:
        file = wait_until(lambda: next(case.runs.glob("case/*/checkpoints/step-00000050.tmp/*.safetensors"), None), "a save")
        wait_until(lambda: not file.exists() or file.stat().st_size > 0.5 * STATE_MB * 1e6, "half of it")
        result, seconds = interrupt(case, program, signal.SIGTERM)
    assert seconds < 5
    assert result.summary["saved_step"] == 50 < result.summary["steps"], result
    assert verified(case)[1] == [50]


def test_a_worker_that_cannot_answer_is_stopped_before_the_kill(case):
    with case.start_training("--set", "elastic.grace=2 s", "--set", "checkpoint.every=20 steps") as program:
        wait_until(lambda: program.process.poll() is not None or
                   (case.run_directories() and checkpoints(case.run_directory())), "the first checkpoint")
        os.kill(program.find_worker(), signal.SIGSTOP)
        result, seconds = interrupt(case, program, signal.SIGTERM)
    assert seconds < 2
    assert result.summary["saved_step"] > 0 and result.summary["samples_to_repeat"] is None
    assert "what came after it will be trained again" in result.err
    assert result.summary["saved_step"] in verified(case)[1]


def test_a_notice_and_then_its_signal_is_one_stop(case):
    """Slurm sends USR1 a while before, and TERM when the time is over."""
    with case.start_training() as program:
        wait_for_steps(case, program, 20)
        program.signal(signal.SIGUSR1)
        time.sleep(0.15)
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 75 and result.summary["samples_to_repeat"] == 0, result


def test_twice_ends_at_once(case, shim):
    with case.start_training("--set", "elastic.grace=60 s", env=slow(shim, STATE_MB * 1e6 / 30)) as program:
        wait_for_steps(case, program, 20)
        worker = program.find_worker()
        program.signal(signal.SIGTERM)
        wait_until(lambda: list(case.runs.glob("case/*/checkpoints/step-*.tmp")), "the save")
        time.sleep(0.15)
        begin = time.monotonic()
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 130 and time.monotonic() - begin < 2, result
    assert not is_running(worker)


def test_a_grace_of_a_second_is_enough_for_a_small_state(case):
    with case.start_training("--set", "elastic.grace=1 s") as program:
        wait_for_steps(case, program, 20)
        result, seconds = interrupt(case, program, signal.SIGTERM)
    assert result.summary["samples_to_repeat"] == 0 and seconds < 1, result


def test_the_last_save_of_a_run_is_given_up_too(case, shim):
    sets = ("--set", "elastic.grace=3 s", "--set", "train.steps=40")
    with case.start_training(*sets, env=slow(shim, STATE_MB * 1e6 / 12)) as program:
        wait_until(lambda: list(case.runs.glob("case/*/checkpoints/step-00000040.tmp")), "the last save")
        result, seconds = interrupt(case, program, signal.SIGTERM)
    assert seconds < 3
    assert "was given up" in result.err and result.summary["samples_to_repeat"] == 40 * 8, result
    assert case.train("--set", "train.steps=40").code == 0


def test_a_notice_while_it_saves_for_ctrl_c_sets_the_end(case, shim):
    with case.start_training("--set", "elastic.grace=3 s", env=slow(shim, STATE_MB * 1e6 / 12)) as program:
        wait_for_steps(case, program, 20)
        program.signal(signal.SIGINT)
        wait_until(lambda: list(case.runs.glob("case/*/checkpoints/step-*.tmp")), "the save")
        time.sleep(0.15)
        result, seconds = interrupt(case, program, signal.SIGUSR1)
    assert seconds < 3
    assert "was given up" in result.err and result.summary["samples_to_repeat"] > 0, result


def test_a_save_that_fails_is_tried_again_while_there_is_time(case, shim):
    env = {"LD_PRELOAD": str(shim), "SKYTRAIN_FAULT": f"once-{errno.EIO}:fsync:1:{CHECKPOINTS}"}
    with case.start_training("--set", "elastic.grace=20 s", env=env) as program:
        wait_for_steps(case, program, 20)
        result, seconds = interrupt(case, program, signal.SIGTERM)
    assert result.summary["samples_to_repeat"] == 0 and seconds < 5, result
    assert "could not be saved: " in result.err and "training goes on" not in result.err, result


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.2])
def test_a_signal_to_every_process_while_the_worker_starts(case, delay):
    """Slurm and systemd signal all of a job: the worker did not know of stopping yet, and the run counted as failed."""
    with case.start_training() as program:
        worker = program.wait_for_worker()
        time.sleep(delay)
        os.kill(worker, signal.SIGTERM)
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 75, result


def test_a_stop_while_auto_is_being_decided(place):
    write_idx(place.folder / "mnist", train=256, test=16, side=32)
    place.write_recipe(model="{name: resnet18, classes: 10}", length="steps: 20", batch="auto", devices=1)
    with place.start_training("--set", "train.precision=auto") as program:
        program.wait_for_worker()
        time.sleep(1)
        begin = time.monotonic()
        program.signal(signal.SIGINT)
        result = program.finish()
        assert time.monotonic() - begin < 15
    assert result.code == 75, result


def test_what_was_interrupted_goes_on_as_if_it_had_not_been(place, shim):
    """Stopped once with the save given up, once with it."""
    write_idx(place.folder / "mnist", train=512, test=16)
    place.write_recipe(model="{name: mlp, classes: 10, hidden: [512, 256]}", length="steps: 1500", batch=8, devices=1,
                       optimizer="{name: adam, lr: 0.0001}", checkpoint_every="150 steps", eval_every="750 steps")
    with place.start_training("--set", "elastic.grace=1 s", env=slow(shim, STATE_MB * 1e6 / 0.7)) as program:
        wait_until(lambda: program.process.poll() is not None or
                   (place.run_directories() and checkpoints(place.run_directory())), "a checkpoint")
        interrupt(place, program, signal.SIGTERM)
    with place.start_training() as program:
        wait_until(lambda: program.process.poll() is not None or
                   max(checkpoints(place.run_directory())) >= 450, "another checkpoint")
        interrupt(place, program, signal.SIGUSR1)
    assert place.train().code == 0
    reference = Workplace(place.folder)
    reference.runs = place.folder / "reference"
    assert reference.train("--runs", "reference").code == 0
    assert_same_training(place.run_directory(), reference.run_directory())
