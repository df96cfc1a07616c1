"""ResNet-18 with the CIFAR stem on CIFAR-10, the job of recipes/cifar10_resnet18.yaml in plain PyTorch. Prints one JSON line.

    python_train.py FOLDER --seed 1 --epochs 3

FOLDER holds the binary version of the data set: data_batch_*.bin and test_batch.bin, records of a label byte and 3 x 32 x 32.
"""
import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import resnet18

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def read(files):
    records = np.concatenate([np.fromfile(file, dtype=np.uint8).reshape(-1, 3073) for file in files])
    return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(records[:, 0].astype(np.int64))


def augmented(images, pad):
    """A random crop of the zero-padded picture, mirrored in one case of two; bytes in, bytes out."""
    count, channels, height, width = images.shape
    padded = F.pad(images, (pad, pad, pad, pad))
    top, left = torch.randint(0, 2 * pad + 1, (2, count))
    rows = top[:, None] + torch.arange(height)
    columns = left[:, None] + torch.arange(width)
    columns = torch.where(torch.rand(count, 1) < 0.5, columns.flip(1), columns)
    return padded[torch.arange(count)[:, None, None, None], torch.arange(channels)[None, :, None, None],
                  rows[:, None, :, None], columns[:, None, None, :]]


def normalised(images):
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    return ((images.float() / 255 - mean) / std).contiguous(memory_format=torch.channels_last)


def make_model():
    model = resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model.to(memory_format=torch.channels_last)


def train(args, model, images, labels):
    """Returns the loss of the last step."""
    parameters = list(model.parameters())
    groups = [dict(params=[p for p in parameters if p.dim() > 1], weight_decay=args.weight_decay),
              dict(params=[p for p in parameters if p.dim() == 1], weight_decay=0.0)]
    optimizer = torch.optim.SGD(groups, lr=args.lr, momentum=args.momentum, nesterov=True, fused=True)
    total = math.ceil(len(images) / args.batch) * args.epochs
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=total, cycle_momentum=False)
    model.train()
    for epoch in range(args.epochs):
        begin = time.time()
        for index in torch.randperm(len(images)).split(args.batch):
            x = normalised(augmented(images[index], args.pad))
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
                logits = model(x)
            loss = F.cross_entropy(logits.float(), labels[index])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if scheduler.last_epoch + 1 < total:
                scheduler.step()
            if args.steps and scheduler.last_epoch >= args.steps:
                return loss.item()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, {time.time() - begin:.0f} s", flush=True)
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1, help="the highest of the cycle")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4, help="not of biases and batch norms")
    parser.add_argument("--pad", type=int, default=4)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", type=int, default=0, help="end after so many, to try things out")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    images, labels = read(sorted(args.folder.glob("data_batch_*.bin")))
    test_images, test_labels = read([args.folder / "test_batch.bin"])
    model = make_model()
    begin = time.time()
    loss = train(args, model, images, labels)
    seconds = time.time() - begin
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
        right = sum((model(normalised(x)).argmax(1) == y).sum().item()
                    for x, y in zip(test_images.split(100), test_labels.split(100)))
    print(json.dumps(dict(samples=len(images), seconds=seconds, last_loss=loss, top1=right / len(test_images))))


if __name__ == "__main__":
    main()
