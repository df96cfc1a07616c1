# judges: skytrain/checkpoint skytrain/tensor skytrain/model skytrain/train skytrain/data
"""Weights open in Python, and are the trained network.

The safetensors library and xxhash read the checkpoint; NumPy, which knows nothing of us, computes the network with those
weights over the original test set and must get the accuracy that the run claims.
"""
import gzip
import json

import judged_run
import numpy
import xxhash
from safetensors import numpy as safetensors_numpy

MEAN, STD = 0.1307, 0.3081


def files_are_what_the_manifest_says(checkpoint) -> None:
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    assert manifest["step"] == judged_run.summary()["steps"]
    listed = {file["name"] for file in manifest["files"]}
    assert listed == {path.name for path in checkpoint.iterdir()} - {"manifest.json"}
    for file in manifest["files"]:
        content = (checkpoint / file["name"]).read_bytes()
        assert len(content) == file["bytes"], file["name"]
        assert xxhash.xxh128_hexdigest(content) == file["xxh128"], f"{file['name']}: hash differs"


def idx(name: str, header: int) -> numpy.ndarray:
    with gzip.open(judged_run.repository() / "data" / "mnist" / name) as file:
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


if __name__ == "__main__":
    newest = judged_run.newest_checkpoint()
    files_are_what_the_manifest_says(newest)
    tensors: dict[str, numpy.ndarray] = {}
    for path in newest.glob("*.safetensors"):
        tensors |= safetensors_numpy.load_file(path)
    ours, summary = accuracy(tensors), judged_run.summary()
    # NumPy computes in fp32; a run in bf16 rounds a few pictures differently.
    allowed = 0.0005 if summary["precision"] == "fp32" else 0.003
    print(f"NumPy finds {ours:.4f}, the run claims {summary['eval']['top1']:.4f}")
    assert abs(ours - summary["eval"]["top1"]) <= allowed
