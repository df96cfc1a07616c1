#!/usr/bin/env python3
"""Weights open in Python, and are the trained network.

usage: judge_weights.py RUN_DIR          a run of recipes/mnist_simplecnn.yaml

The safetensors library and xxhash read the checkpoint; NumPy, which knows nothing of us, computes the network with those
weights over the original test set and must get the accuracy that the run claims.
"""
import gzip
import json
import pathlib
import sys

import numpy
import xxhash
from safetensors import numpy as safetensors_numpy

MNIST = pathlib.Path(__file__).resolve().parents[2] / "data" / "mnist"
MEAN, STD = 0.1307, 0.3081


def files_are_what_the_manifest_says(checkpoint: pathlib.Path, steps: int) -> None:
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    assert manifest["step"] == steps, f"the newest checkpoint is of step {manifest['step']}, the run has {steps}"
    listed = {file["name"] for file in manifest["files"]}
    assert listed == {path.name for path in checkpoint.iterdir()} - {"manifest.json"}
    for file in manifest["files"]:
        content = (checkpoint / file["name"]).read_bytes()
        assert len(content) == file["bytes"], file["name"]
        assert xxhash.xxh128_hexdigest(content) == file["xxh128"], f"{file['name']}: hash differs"


def idx(name: str, header: int) -> numpy.ndarray:
    with gzip.open(MNIST / name) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def accuracy(weights: dict[str, numpy.ndarray]) -> float:
    """conv 3x3 -> relu -> linear on the 10,000 test pictures."""
    images = idx("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28).astype(numpy.float32) / 255
    labels = idx("t10k-labels-idx1-ubyte.gz", 8)
    images = (images - MEAN) / STD
    kernel = weights["model.conv1.weight"].reshape(32, 9).T
    right = 0
    for begin in range(0, len(images), 500):
        windows = numpy.lib.stride_tricks.sliding_window_view(images[begin:begin + 500], (3, 3), axis=(1, 2))
        features = windows.reshape(-1, 9) @ kernel + weights["model.conv1.bias"]
        features = numpy.maximum(features, 0).reshape(-1, 26 * 26, 32).transpose(0, 2, 1).reshape(-1, 32 * 26 * 26)
        logits = features @ weights["model.fc1.weight"].T + weights["model.fc1.bias"]
        right += int((logits.argmax(1) == labels[begin:begin + 500]).sum())
    return right / len(images)


def judge(run: pathlib.Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    newest = max((run / "checkpoints").glob("step-*"))
    files_are_what_the_manifest_says(newest, summary["steps"])
    tensors: dict[str, numpy.ndarray] = {}
    for path in newest.glob("*.safetensors"):
        tensors |= safetensors_numpy.load_file(path)
    ours, claimed = accuracy(tensors), summary["eval"]["top1"]
    # NumPy computes in fp32; a run in bf16 rounds a few pictures differently.
    allowed = 0.0005 if summary["precision"] == "fp32" else 0.003
    print(f"NumPy finds {ours:.4f}, the run claims {claimed:.4f}")
    assert abs(ours - claimed) <= allowed


if __name__ == "__main__":
    judge(pathlib.Path(sys.argv[1]))
