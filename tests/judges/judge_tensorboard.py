#!/usr/bin/env python3
"""TensorBoard's own reader against metrics.jsonl: the same scalars at the same steps, none missing, twice or stale.

usage: judge_tensorboard.py RUN_DIR...       also judges the resumed run that skytrain_record_test writes

A run that was resumed has one event file an attempt; what an attempt wrote beyond the step from which the next one
resumed must be gone for TensorBoard, as it is gone from metrics.jsonl.
"""
import json
import math
import pathlib
import sys
import tempfile

import fixtures
import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TRAIN_KEYS = ("loss", "lr", "samples_per_second")
NOT_METRICS = ("samples", "seconds")  # of an evaluation


def expected_scalars(metrics_file):
    """{tag: [(step, value)]} in the order of the file."""
    scalars = {}
    for line in metrics_file.read_text().splitlines():
        record = json.loads(line)
        group, source, keys = "train", record, TRAIN_KEYS
        if "eval" in record:
            source = record["eval"]
            group, keys = "eval", [key for key in source if key not in NOT_METRICS]
        for key in keys:
            if source.get(key) is not None:
                scalars.setdefault(f"{group}/{key}", []).append((record["step"], source[key]))
    return scalars


def judge(run):
    problems = []
    accumulator = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    if accumulator.file_version != 2.0:
        problems.append(f"file version {accumulator.file_version}, expected 2")
    expected = expected_scalars(run / "metrics.jsonl")
    if not expected:
        problems.append("metrics.jsonl holds no scalars: nothing was judged")
    found = {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
             for tag in accumulator.Tags()["scalars"]}
    for tag in sorted(expected.keys() | found.keys()):
        ours, theirs = expected.get(tag, []), found.get(tag, [])
        if [step for step, _ in ours] != [step for step, _ in theirs]:
            problems.append(f"{tag}: TensorBoard sees {len(theirs)} steps, metrics.jsonl has {len(ours)}")
            continue
        for (step, value), (_, read) in zip(ours, theirs):
            if numpy.float32(value) != numpy.float32(read) and not (math.isnan(value) and math.isnan(read)):
                problems.append(f"{tag} at step {step}: TensorBoard reads {read}, metrics.jsonl has {value}")
                break
    count = sum(len(points) for points in found.values())
    files = len(list(run.glob("events.out.tfevents.*")))
    return problems, f"{count} scalars in {len(found)} tags, {files} event file(s)"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    runs = [pathlib.Path(argument) for argument in sys.argv[1:]]
    failed = False
    with tempfile.TemporaryDirectory(prefix="skytrain-judge-") as folder:
        if fixtures.write("skytrain_record_test", "RecordFixture", "SKYTRAIN_RECORD_FIXTURE", folder):
            runs.append(pathlib.Path(folder))
        for run in runs:
            problems, summary = judge(run)
            for problem in problems:
                print(f"{run}: {problem}")
            failed |= bool(problems)
            print(f"{run}: {'FAILED' if problems else 'ok'}: {summary}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
