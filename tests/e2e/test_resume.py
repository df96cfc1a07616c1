"""kill -9 at any moment, then resume: as if nothing had happened."""
import fcntl
import os
import random
import shutil
import signal
import time

import pytest

from harness import (Workplace, assert_same_training, checkpoints, is_running, logged_steps, metrics, wait_until,
                     write_idx)

KILLS = int(os.environ.get("SKYTRAIN_TEST_KILLS", 50))  # ./dev soak checkpoint: thousands
SEED = int(os.environ.get("SKYTRAIN_TEST_SEED", time.time_ns() % 1_000_000))


def other_runs(place, name):
    """The same recipe and data with another folder of runs."""
    other = Workplace(place.folder)
    other.runs = place.folder / name
    return other


def reference_run(place, *arguments):
    """What an uninterrupted run leaves behind, and how long it took until it trained, and in all."""
    begin = time.monotonic()
    result = place.train("--runs", "reference", *arguments)
    wall = time.monotonic() - begin
    assert result.code == 0, result
    (run,) = other_runs(place, "reference").run_directories()
    return run, result.summary["time_to_first_step_s"], wall


def lock_is_free(run):
    with open(run / "lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False


def test_kill_at_random_moments_then_resume_gives_the_uninterrupted_run(place, capsys):
    with capsys.disabled():
        print(f"\n  SKYTRAIN_TEST_SEED={SEED}", end=" ", flush=True)
    rng = random.Random(SEED)
    # A network with batch norm (running statistics are state too) on Adam (moments are), with a pending evaluation now
    # and then, and checkpoints so frequent that many a kill falls into one.
    write_idx(place.folder / "mnist", train=480, test=200)
    place.write_recipe(model="{name: convnet, classes: 10, width: 16}", length="epochs: 8", batch=8,
                       optimizer="{name: adam, lr: 0.002}", checkpoint_every="7 steps", eval_every="50 steps")
    reference, start_up, wall = reference_run(place)
    training = wall - start_up

    kills, lives, log = 0, 0, []
    while kills < KILLS:
        lives += 1
        runs = f"life-{lives}"
        life = other_runs(place, runs)
        while True:
            victim = rng.choice(["worker", "both", "front"])
            delay = rng.uniform(0, start_up + training / 3) if kills < KILLS else None
            with place.start_training("--runs", runs) as program:
                if delay is None:
                    result = program.finish()
                    assert result.code == 0, (log, result)
                    break
                end = time.monotonic() + delay
                while time.monotonic() < end and program.process.poll() is None:
                    program.find_worker()
                    time.sleep(0.002)
                worker = program.find_worker()
                if program.process.poll() is not None:  # it was faster than the killer
                    result = program.finish()
                    assert result.code == 0, (log, result)
                    break
                if victim != "front" and worker is None:
                    victim = "front"  # there is no worker yet
                if victim in ("worker", "both") and is_running(worker):
                    os.kill(worker, signal.SIGKILL)
                if victim in ("front", "both"):
                    program.process.kill()
                result = program.finish()
                kills += 1
                log.append((lives, victim, round(delay, 3), result.code))
                if victim == "worker":
                    # It may have been at its end already; else the front program says who died.
                    assert result.code in (0, 7), (log, result)
                    assert result.code == 0 or "SIGKILL" in result.err, (log, result)
                if victim == "front" and worker is not None:
                    wait_until(lambda: not is_running(worker), "the orphaned worker to save and end", timeout=30)
                    run_directories = life.run_directories()
                    assert all(lock_is_free(run) for run in run_directories), log
        run_directories = life.run_directories()
        # A kill before run.json was written leaves a folder that is no run; resume passes it over.
        assert len(run_directories) == 1, (log, run_directories)
        assert_same_training(run_directories[0], reference)
    with capsys.disabled():
        print(f"{kills} kills in {lives} runs", end=" ", flush=True)


def test_a_resume_right_after_the_front_program_was_killed_waits_for_the_worker(place):
    write_idx(place.folder / "mnist", train=512)
    place.write_recipe(length="epochs: 40", checkpoint_every="100 steps")
    reference, _, _ = reference_run(place)
    with place.start_training() as program:
        wait_until(lambda: place.run_directories() and checkpoints(place.run_directory()), "a checkpoint")
        worker = program.find_worker()
        program.process.kill()
        result = place.train()
        assert result.code == 0, result
        assert not is_running(worker)
    assert_same_training(place.run_directory(), reference)


def test_two_at_once_do_not_write_one_run(place):
    write_idx(place.folder / "mnist", train=512)
    place.write_recipe(length="steps: 1000000")
    with place.start_training() as program:
        wait_until(lambda: place.run_directories() and logged_steps(place.run_directory()), "the first step")
        begin = time.monotonic()
        second = place.train()
        assert second.code == 5, second
        assert "in use by process" in second.err, second
        assert time.monotonic() - begin < 30
        program.signal(signal.SIGINT)
        assert program.finish().code == 75


# Resume at an epoch's end reran the epoch; in the middle of one it skipped the rest or did one batch twice. Steps of 8 of
# 24 samples, so epochs end after 3, 6 and 9.
class TestEdges:
    STEPS = 9

    @pytest.fixture
    def edge_place(self, place):
        write_idx(place.folder / "mnist", train=24, test=20, side=28)
        place.write_recipe(length="epochs: 3", batch=8, schedule="{name: constant}", checkpoint_every="1 steps", keep=20)
        return place

    def cut_back(self, place, reference, k):
        """A run that was killed right after the checkpoint of step k: what came later is not there, except for metrics
        and events, which are written before the checkpoint they belong to."""
        run = place.runs / "case" / reference.name
        shutil.copytree(reference, run)
        for step, path in checkpoints(run).items():
            if step > k:
                shutil.rmtree(path)
        for name in ("summary.json", "report.html"):
            (run / name).unlink(missing_ok=True)
        return run

    @pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 6, 8, 9])
    def test_killed_after_step(self, edge_place, k):
        reference, _, _ = reference_run(edge_place)
        assert [line["step"] for line in metrics(reference)] == list(range(1, self.STEPS + 1))
        run = self.cut_back(edge_place, reference, k)
        result = edge_place.train()
        assert result.code == 0, result
        assert edge_place.run_directory() == run
        assert result.summary["steps"] == self.STEPS and result.summary["samples"] == 72
        assert_same_training(run, reference)

    @pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 8])
    def test_terminated_after_step(self, edge_place, k):
        # Steps take a millisecond: the worker is held at step k by stopping it when the checkpoint of k appears, so the
        # request finds it there or a few steps later; every k from 1 to 9 is met over the six cases.
        reference, _, _ = reference_run(edge_place)
        with edge_place.start_training() as program:
            wait_until(lambda: program.process.poll() is not None or
                       (edge_place.run_directories() and k in checkpoints(edge_place.run_directory())),
                       f"step {k}", every=0.0005)
            program.signal(signal.SIGTERM)
            result = program.finish()
        assert result.code in (0, 75), result  # 0: the last step was done already
        if result.code == 75:
            assert result.summary["status"] == "interrupted" and result.summary["steps"] >= k
        result = edge_place.train()
        assert result.code == 0, result
        assert_same_training(edge_place.run_directory(), reference)

    def test_a_finished_run_has_nothing_left_to_do(self, edge_place):
        assert edge_place.train().code == 0
        run = edge_place.run_directory()
        before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
        begin = time.monotonic()
        again = edge_place.train()
        assert again.code == 0 and "nothing left to do" in again.err, again
        assert time.monotonic() - begin < 0.5, "at once: no worker is started"
        assert again.summary["steps"] == self.STEPS
        assert before == {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}


# Interrupted in an evaluation, resumed, and killed after that evaluation: its line must not come twice.
def test_an_evaluation_that_was_redone_is_recorded_once(place):
    write_idx(place.folder / "mnist", train=64, test=3000, side=20)
    place.write_recipe(model="{name: convnet, classes: 10, width: 32}", length="steps: 40", eval_every="20 steps",
                       checkpoint_every="19 steps")
    reference, _, _ = reference_run(place)
    with place.start_training() as program:
        wait_until(lambda: place.run_directories() and checkpoints(place.run_directory()) or
                   program.process.poll() is not None, "step 19")
        time.sleep(0.1)  # step 20, and into its evaluation, which takes half a second or more
        program.signal(signal.SIGINT)
        result = program.finish()
    assert result.code == 75 and not metrics(place.run_directory(), "evaluations"), result
    for _ in range(2):
        with place.start_training() as program:
            wait_until(lambda: metrics(place.run_directory(), "evaluations") or program.process.poll() is not None,
                       "the evaluation")
            worker = program.find_worker()
            if worker and is_running(worker):
                os.kill(worker, signal.SIGKILL)
            program.process.kill()
            program.finish()
    result = place.train()
    assert result.code == 0, result
    assert_same_training(place.run_directory(), reference)


class TestDamagedCheckpoints:
    @pytest.fixture
    def interrupted(self, place):
        """A run with checkpoints of each of its 8 steps, not complete."""
        write_idx(place.folder / "mnist", train=64, test=20)
        place.write_recipe(length="steps: 8", batch=8, checkpoint_every="1 steps", keep=20)
        reference, _, _ = reference_run(place)
        run = place.runs / "case" / reference.name
        shutil.copytree(reference, run)
        (run / "summary.json").unlink()
        return place, run, reference

    @staticmethod
    def damage(path, how):
        tensors = next(path.glob("*.safetensors"))
        if how == "truncated":
            os.truncate(tensors, tensors.stat().st_size // 2)
        elif how == "empty":
            os.truncate(tensors, 0)
        elif how == "one bit":
            content = bytearray(tensors.read_bytes())
            content[-100] ^= 0x10
            tensors.write_bytes(content)
        elif how == "missing":
            tensors.unlink()
        elif how == "manifest cut":
            os.truncate(path / "manifest.json", 40)
        elif how == "manifest gone":
            (path / "manifest.json").unlink()

    @pytest.mark.parametrize("how", ["truncated", "empty", "one bit", "missing", "manifest cut", "manifest gone"])
    def test_the_newest_that_verifies_is_used_and_each_passed_over_is_named(self, interrupted, how):
        place, run, reference = interrupted
        saved = checkpoints(run)
        for step in (8, 7):
            self.damage(saved[step], how)
        result = place.train()
        assert result.code == 0, result
        for step in (8, 7):
            named = [line for line in result.err.splitlines() if saved[step].name in line]
            assert any("passed over" in line for line in named), result
        assert "continuing after step 6" in result.err, result
        assert_same_training(run, reference)

    def test_when_none_verifies_that_is_said(self, interrupted):
        place, run, _ = interrupted
        for path in checkpoints(run).values():
            self.damage(path, "one bit")
        result = place.train()
        # Starting again from nothing would cut away the metrics: that is for the user to decide.
        assert result.code == 4, result
        assert "step-00000008" in result.err and "--resume never" in result.err, result
        assert result.summary["error"]["kind"] == "data"

    # Chosen by name, 100000 beat 0900000 and a folder "handpicked" beat both; a torn directory was resumed.
    def test_names_that_are_no_checkpoints_are_never_chosen(self, interrupted):
        place, run, reference = interrupted
        saved = checkpoints(run)
        folder = run / "checkpoints"
        shutil.copytree(saved[3], folder / "handpicked")
        shutil.copytree(saved[2], folder / "step-99999999")          # a name that its manifest does not bear out
        shutil.copytree(saved[5], folder / "step-00000009.tmp")      # not committed
        result = place.train()
        assert result.code == 0, result
        assert "continuing after step 8" in result.err, result
        assert_same_training(run, reference)


def test_another_recipe_is_not_continued(trained_place):
    assert trained_place.train().code == 0
    run = trained_place.run_directory()
    result = trained_place.train("--resume", run, "--set", "train.batch=8")
    assert result.code == 3, result
    assert "train.batch" in result.err and len(result.err.splitlines()) <= 4, result
    result = trained_place.train("--set", "train.batch=8")  # auto: a run of its own
    assert result.code == 0 and len(trained_place.run_directories()) == 2, result


def test_other_data_is_not_continued(place):
    write_idx(place.folder / "mnist", train=64)
    place.write_recipe(length="steps: 400", checkpoint_every="1 steps")
    with place.start_training() as program:
        wait_until(lambda: place.run_directories() and checkpoints(place.run_directory()), "a checkpoint")
        program.signal(signal.SIGINT)
        assert program.finish().code == 75
    write_idx(place.folder / "mnist", train=72)
    result = place.train()
    assert result.code == 4, result
    assert "other data" in result.err and "--resume never" in result.err, result
