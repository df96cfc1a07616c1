# judges: skytrain/record skytrain/train
"""The real TensorBoard reads our event files: its reader finds every logged value, and its server shows the run."""
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request

import judged_run
from tensorboard.backend.event_processing import event_accumulator


def reader_finds_every_value() -> None:
    accumulator = event_accumulator.EventAccumulator(str(judged_run.folder()), size_guidance={"scalars": 0})
    accumulator.Reload()
    lines = judged_run.metrics()
    for tag, key in (("train/loss", "loss"), ("train/lr", "lr"), ("train/samples_per_second", "samples_per_second")):
        expected = [(line["step"], line[key]) for line in lines if key in line]
        found = [(event.step, event.value) for event in accumulator.Scalars(tag)]
        assert len(found) == len(expected) > 0, f"{tag}: {len(found)} events, {len(expected)} lines in metrics.jsonl"
        for (step, value), (wanted_step, wanted) in zip(found, expected):
            assert step == wanted_step, f"{tag}: step {step}, metrics.jsonl has {wanted_step}"
            assert abs(value - wanted) <= 1e-6 * abs(wanted), f"{tag}: step {step} is {value}, metrics.jsonl has {wanted}"
    evaluations = [line for line in lines if "eval" in line]
    assert evaluations, "metrics.jsonl has no evaluation"
    for tag in ("loss", "top1"):
        found = [(event.step, round(event.value, 5)) for event in accumulator.Scalars(f"eval/{tag}")]
        assert found == [(line["step"], round(line["eval"][tag], 5)) for line in evaluations], f"eval/{tag}: {found}"
    wall = [event.wall_time for event in accumulator.Scalars("train/loss")]
    assert wall == sorted(wall) and wall[0] > 1e9, "wall times go back, or are no Unix seconds"


def server_shows_the_run() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", "--logdir", str(judged_run.folder()), "--host", "127.0.0.1", "--port", "0",
         "--load_fast", "false", "--reload_interval", "1"], stderr=subprocess.PIPE, text=True)
    try:
        address = None
        for line in server.stderr:  # ends when the server does
            match = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if match:
                address = match.group(0)
                break
        assert address, "tensorboard did not start"
        tags: dict = {}
        while not tags:  # it loads in the background
            with urllib.request.urlopen(address + "data/plugin/scalars/tags", timeout=60) as answer:
                tags = json.load(answer)
        (run, of_run), = tags.items()
        assert "train/loss" in of_run and "eval/top1" in of_run, f"tags that the server shows: {sorted(of_run)}"
        query = urllib.parse.urlencode({"run": run, "tag": "eval/top1"})
        with urllib.request.urlopen(f"{address}data/plugin/scalars/scalars?{query}", timeout=60) as answer:
            points = json.load(answer)
        assert abs(points[-1][2] - judged_run.summary()["eval"]["top1"]) < 1e-5, points
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    reader_finds_every_value()
    server_shows_the_run()
