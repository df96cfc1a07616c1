"""What skytrain train prints and writes, on a terminal and off."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import termios
import time

from harness import Program, checkpoints, metrics, write_idx

SUMMARY_KEYS = {"status", "run_dir", "report", "steps", "samples", "seconds", "samples_per_second",
                "time_to_first_step_s", "peak_rss_bytes", "eval", "train_loss", "parameters", "devices", "slot",
                "precision", "time", "data_fingerprint", "torch_version", "version", "attempts"}
STEP_KEYS = {"t", "step", "samples", "epoch", "loss", "lr", "world", "generation", "samples_per_second", "data_s",
             "forward_s", "backward_s", "optimizer_s", "other_s"}


def test_the_last_json_line_tells_the_result(trained_place):
    begin = time.time()
    result = trained_place.train()
    wall = time.time() - begin
    assert result.code == 0, result
    summary = result.summary
    assert SUMMARY_KEYS <= summary.keys(), SUMMARY_KEYS - summary.keys()
    assert summary["status"] == "complete"
    assert (summary["steps"], summary["samples"], summary["devices"], summary["slot"]) == (32, 512, 2, 8)
    assert summary["eval"]["samples"] == 64
    assert summary["eval"]["top1"] > 0.9, "the data set is easy"
    assert 0 < summary["seconds"] < wall and 0 < summary["time_to_first_step_s"] < wall
    assert abs(summary["samples_per_second"] - 512 / summary["seconds"]) < 1e-6 * summary["samples_per_second"]
    assert 50 << 20 < summary["peak_rss_bytes"] < 2 << 30
    assert summary["precision"] == "fp32" and summary["attempts"] == 1
    assert os.path.isabs(summary["run_dir"]) and os.path.isfile(summary["report"])
    assert json.loads((trained_place.run_directory() / "summary.json").read_text()) == summary


def test_metrics_have_each_step_once_and_every_field(trained_place):
    begin = time.time()
    result = trained_place.train()
    assert result.code == 0, result
    lines = metrics(trained_place.run_directory())
    assert [line["step"] for line in lines] == list(range(1, 33))
    assert all(STEP_KEYS <= line.keys() for line in lines), STEP_KEYS - lines[0].keys()
    assert [line["samples"] for line in lines] == [16 * step for step in range(1, 33)]
    assert [line["epoch"] for line in lines] == [step / 16 for step in range(1, 33)]
    assert all(isinstance(line["t"], float) and begin - 1 < line["t"] < time.time() + 1 for line in lines)
    assert all(a["t"] <= b["t"] for a, b in zip(lines, lines[1:]))
    assert {line["world"] for line in lines} == {1}
    evaluations = metrics(trained_place.run_directory(), "evaluations")
    assert [(line["step"], line["samples"]) for line in evaluations] == [(16, 256), (32, 512)]
    assert evaluations[-1]["eval"]["loss"] == result.summary["eval"]["loss"]


def test_log_every_sums_the_steps_between_two_lines(trained_place):
    trained_place.train("--runs", "fine")
    result = trained_place.run("train", "recipe.yaml", "--json", "--log-every", 5, "--runs", "coarse")
    assert result.code == 0, result
    fine = {line["step"]: line for line in metrics(next((trained_place.folder / "fine/case").iterdir()))}
    coarse = metrics(next((trained_place.folder / "coarse/case").iterdir()))
    assert [line["step"] for line in coarse] == [5, 10, 15, 20, 25, 30, 32]
    last = 0
    for line in coarse:
        steps = range(last + 1, line["step"] + 1)
        assert abs(line["loss"] - sum(fine[s]["loss"] for s in steps) / len(steps)) < 1e-9
        last = line["step"]


def test_runs_names_the_folder_of_runs(trained_place):
    result = trained_place.train("--runs", "elsewhere/deep")
    assert result.code == 0, result
    (run,) = (trained_place.folder / "elsewhere/deep/case").iterdir()
    assert result.summary["run_dir"] == str(run)
    for name in ("recipe.yaml", "recipe.json", "run.json", "metrics.jsonl", "evaluation.json", "summary.json",
                 "report.html", "log.txt"):
        assert (run / name).stat().st_size > 0, name
    assert list(run.glob("events.out.tfevents.*")) and checkpoints(run)
    assert not trained_place.runs.exists()


def test_stdout_holds_json_alone_and_nothing_without_json(trained_place):
    with_json = trained_place.train()
    assert len(with_json.json_lines) >= 1  # parses every line
    without = trained_place.run("train", "recipe.yaml", "--resume", "never")
    assert without.code == 0 and without.out == ""


def test_off_a_terminal_lines_are_calm(place):
    write_idx(place.folder / "mnist", train=1024)
    place.write_recipe(length="epochs: 3", checkpoint_every="1 steps", keep=1)
    result = place.run("train", "recipe.yaml")
    assert result.code == 0, result
    assert "\r" not in result.err and "\x1b" not in result.err
    # 192 steps, each with a checkpoint: a line for each tenth, an evaluation, and a few around.
    assert 5 <= len(result.err.splitlines()) <= 45, result.err
    assert re.search(r"\d+%.*samples/s.*ETA", result.err), result.err


def on_terminal(arguments, cwd, columns=100, **env):
    """What the program writes to a terminal that is its stderr."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with Program(arguments, cwd, env={"TERM": "xterm-256color", **env}, stderr=child) as program:
        os.close(child)
        seen = b""
        while True:
            ready, _, _ = select.select([parent], [], [], 60)
            assert ready, seen
            try:
                part = os.read(parent, 65536)
            except OSError:  # EIO: the last writer has gone
                break
            if not part:
                break
            seen += part
        program.process.stdout.read()
        program.process.wait()
        os.close(parent)
        return program.process.returncode, seen.decode(errors="replace")


def test_on_a_terminal_a_bar_with_rate_and_eta_is_redrawn_in_place(place):
    write_idx(place.folder / "mnist", train=1024)
    place.write_recipe(length="epochs: 6", model="{name: convnet, classes: 10}")
    code, seen = on_terminal(["train", "recipe.yaml"], place.folder)
    assert code == 0, seen
    bars = [part for part in re.split(r"[\r\n]", seen) if "%" in part and "|" in part]
    assert len(bars) >= 3, seen
    assert seen.count("\r") > len(bars) / 2, "redrawn, not scrolled"
    assert any(re.search(r"samples/s\s+ETA \d\d:\d\d", bar) for bar in bars), bars
    assert any("loss" in bar and "epoch" in bar for bar in bars), bars
    visible = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", bar) for bar in bars]
    assert max(map(len, visible)) < 100, "a full line would wrap"


def test_a_dumb_terminal_gets_lines(trained_place):
    code, seen = on_terminal(["train", "recipe.yaml"], trained_place.folder, TERM="dumb")
    assert code == 0
    assert "\x1b" not in seen and not re.search(r"\r(?!\n)", seen), seen


def test_without_evaluation_data_there_is_no_evaluation(trained_place):
    result = trained_place.train("--set", "data.eval=null")
    assert result.code == 0, result
    assert result.summary.get("eval") is None
    assert not metrics(trained_place.run_directory(), "evaluations")


def test_a_worker_that_is_missing_is_named(trained_place):
    result = trained_place.train(env={"SKYTRAIN_WORKER": "/nowhere/skytrain-worker"})
    assert result.code == 5, result
    assert "/nowhere/skytrain-worker" in result.err
    assert result.summary["error"]["kind"] == "environment"
