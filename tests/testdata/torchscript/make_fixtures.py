#!/usr/bin/env python3
"""Makes the files beside it: what people save from Python and then name as model.path of a TorchScript model.

    .deps/peers/bin/python tests/testdata/torchscript/make_fixtures.py

net.pt is one that trains; expected.json says what Python's own training makes of it. The others are refused, each for a
reason of its own (skytrain/model/torchscript_test.cc).
"""
import json
import pathlib
import sys
import warnings
import zipfile

import torch
from torch import nn
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES, CHANNELS, SIZE, CLASSES, STEPS, RATE = 12, 1, 6, 3, 5, 0.1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(CHANNELS, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, CLASSES)

    def forward(self, images):
        return self.fc(F.relu(self.bn1(self.conv1(images))).mean([2, 3]))


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(CLASSES, CLASSES, bias=False)
        self.b = nn.Linear(CLASSES, CLASSES, bias=False)
        self.b.weight = self.a.weight

    def forward(self, images):
        return self.b(self.a(images.mean([2, 3]).repeat(1, 3)))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(CHANNELS, CLASSES)

    def forward(self, images):
        logits = self.fc(images.mean([2, 3]))
        return logits, logits


class TwoInputs(Pair):
    def forward(self, images, more):
        return self.fc(images.mean([2, 3]) + more)


class Raises(Pair):
    def forward(self, images):
        if images.size(0) > 0:
            raise ValueError("these pictures are not to my taste")
        return self.fc(images.mean([2, 3]))


def images(step):
    """Value i of the batch: ((i * 7919 + step * 104729) % 256 - 128) / 128."""
    i = torch.arange(SAMPLES * CHANNELS * SIZE * SIZE)
    return (((i * 7919 + step * 104729) % 256).float() - 128).div(128).reshape(SAMPLES, CHANNELS, SIZE, SIZE)


def train(path):
    torch.set_num_threads(1)
    net = torch.jit.load(path).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    labels = torch.arange(SAMPLES) % CLASSES
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images(step)), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        logits = net.eval()(images(0))
    return {"losses": losses, "logits": logits.flatten().tolist(), "running_mean": net.bn1.running_mean.tolist(),
            "parameters": [n for n, _ in net.named_parameters()], "buffers": [n for n, _ in net.named_buffers()]}


def without_sources(path):
    """Takes the line numbers and folders out of an archive: they are of the machine that made it."""
    with zipfile.ZipFile(path) as archive:
        records = [(name, archive.read(name).replace(str(HERE.parents[2]).encode(), b"."))
                   for name in archive.namelist() if not name.endswith(".debug_pkl")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in records:
            archive.writestr(zipfile.ZipInfo(name), content)


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    net = Net()
    torch.jit.script(net).save(HERE / "net.pt")
    (HERE / "expected.json").write_text(json.dumps(train(HERE / "net.pt"), indent=1) + "\n")
    for name, module in {"tied": Tied(), "pair": Pair(), "two_inputs": TwoInputs(), "raises": Raises(), "half": Pair().half(),
                         "frozen_parameter": Pair().requires_grad_(False), "no_parameters": nn.Flatten()}.items():
        torch.jit.script(module).save(HERE / f"{name}.pt")
    torch.jit.trace(net.eval(), images(0)).save(HERE / "traced.pt")
    torch.save(net.state_dict(), HERE / "state_dict.pt")
    torch.save({"epoch": 3, "model": net.state_dict()}, HERE / "checkpoint.pt")
    torch.save(net.state_dict(), HERE / "old_state_dict.pt", _use_new_zipfile_serialization=False)
    torch.save(net, HERE / "whole_module.pt")
    scope = {"nn": nn}
    exec("class Mine(nn.Linear): pass", scope)  # from a string, so that the file holds no source
    scope["Mine"].__module__, sys.modules["mine"] = "mine", type(sys)("mine")
    sys.modules["mine"].Mine = scope["Mine"]
    torch.save(scope["Mine"](2, 2), HERE / "old_whole_module.pt", _use_new_zipfile_serialization=False)
    torch.export.save(torch.export.export(nn.Flatten(), (images(0),)), HERE / "exported.pt2")
    for path in HERE.glob("*.pt*"):
        if zipfile.is_zipfile(path):
            without_sources(path)


if __name__ == "__main__":
    main()
