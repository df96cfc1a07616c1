#!/usr/bin/env python3
"""TorchScript goes both ways, and trains here as it does in Python.

usage: judge_torchscript.py [RUN_DIR]          (the run that other judges look at is not needed)

Python saves a ResNet-18 of torchvision. Both sides train it for 20 steps on the same pictures with the same number of
threads; every loss must be equal bit for bit, and so must the module that comes back. Then Python opens a ResNet-18 of our
own that was traced, finds torchvision's names in it, and computes the same logits.
"""
import json
import os
import pathlib
import sys
import tempfile

try:
    import torch
    import torchvision
except ImportError:
    if os.environ.get("SKYTRAIN_JUDGE_AGAIN"):
        raise
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
    from lib import peers
    python = peers.python()
    os.execve(python, [python, *sys.argv], {**os.environ, "SKYTRAIN_JUDGE_AGAIN": "1"})
import torch.nn.functional as F

import fixtures

STEPS, SAMPLES, SIZE, CLASSES, RATE = 20, 8, 64, 10, 0.01
THREADS = min(2, os.cpu_count() or 1)


def make_case(folder: pathlib.Path) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    torch.jit.script(torchvision.models.resnet18(num_classes=CLASSES)).save(folder / "model.pt")
    images, labels = torch.randn(STEPS, SAMPLES, 3, SIZE, SIZE), torch.randint(CLASSES, (STEPS, SAMPLES))
    images.numpy().tofile(folder / "images.bin")
    labels.numpy().tofile(folder / "labels.bin")
    (folder / "case.json").write_text(json.dumps(
        {"threads": THREADS, "shape": list(images.shape), "classes": CLASSES, "rate": RATE}))
    return images, labels


def train(path: pathlib.Path, images: torch.Tensor, labels: torch.Tensor) -> tuple[list[float], torch.jit.ScriptModule]:
    torch.set_num_threads(THREADS)
    model = torch.jit.load(path).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, foreach=False)
    losses = []
    for pictures, classes in zip(images, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), classes)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def judge(folder: pathlib.Path) -> None:
    images, labels = make_case(folder)
    if not fixtures.write("skytrain_model_test", "TorchScriptJudge", "SKYTRAIN_TORCHSCRIPT_CASE", folder):
        sys.exit(1)
    ours = json.loads((folder / "losses.json").read_text())
    losses, model = train(folder / "model.pt", images, labels)
    different = [step for step, (a, b) in enumerate(zip(ours, losses)) if a != b]
    assert len(ours) == STEPS and not different, f"losses differ from step {different[0]} on: {ours} {losses}"

    back = torch.jit.load(folder / "trained.pt")
    assert not back.training, "a trained module comes back in evaluation mode"
    theirs = model.state_dict()
    assert list(back.state_dict()) == list(theirs)
    for name, tensor in back.state_dict().items():
        assert torch.equal(tensor, theirs[name]), f"{name} differs after training"
    print(f"{STEPS} steps of a ResNet-18 with {THREADS} threads: equal bit for bit, from loss {losses[0]:.4f} to {losses[-1]:.4f}")

    traced = torch.jit.load(folder / "traced.pt").eval()
    reference = torchvision.models.resnet18(num_classes=CLASSES)
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in reference.named_parameters()]
    assert set(traced.state_dict()) == set(reference.state_dict())
    logits = torch.from_file(str(folder / "logits.bin"), size=SAMPLES * CLASSES).reshape(SAMPLES, CLASSES)
    with torch.no_grad():
        worst = (traced(images[0]) - logits).abs().max().item()
    assert worst <= 1e-5 * logits.abs().max().item(), f"logits of the traced model differ by {worst}"
    print(f"traced ResNet-18: torchvision's names, logits within {worst:.1g}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        judge(pathlib.Path(made))
