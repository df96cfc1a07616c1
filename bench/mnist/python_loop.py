"""One epoch of the same job in Python: SimpleCNN on MNIST, Adam 1e-3, batch 64, on the CPU. Prints one JSON line.

    python_loop.py tutorial FOLDER                     the loop that tutorials teach
    python_loop.py best FOLDER --precision bf16 --threads 2     the fastest one that we know how to write

FOLDER holds MNIST/raw/*-ubyte, as torchvision's downloader leaves it. The best loop has the whole data set in one tensor,
shuffles it once an epoch (so a batch is a view), normalises in place, uses the fused Adam, and expects malloc to be
tuned by the caller's environment (see `run`): glibc then keeps freed activations instead of faulting them in again.
"""
import argparse
import json
import os
import time


def process_start_unix():
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as file:
        up = float(file.read().split()[0])
    return time.time() - (up - ticks / os.sysconf("SC_CLK_TCK"))


def peak_rss_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def simple_cnn(torch, nn, F, inplace):
    class SimpleCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 32, 3)
            self.fc1 = nn.Linear(32 * 26 * 26, 10)

        def forward(self, x):
            return self.fc1(torch.flatten(F.relu(self.conv1(x), inplace=inplace), 1))
    return SimpleCNN()


def tutorial(folder, seed):
    start = process_start_unix()
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms
    torch.manual_seed(seed)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    train = datasets.MNIST(folder, train=True, download=False, transform=transform)
    test = datasets.MNIST(folder, train=False, download=False, transform=transform)
    loader = DataLoader(train, batch_size=64, shuffle=True)
    model = simple_cnn(torch, nn, F, inplace=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    model.train()
    first = None
    begin = time.time()
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        if first is None:
            first = time.time() - start
    seconds = time.time() - begin
    peak = peak_rss_bytes()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=1000))
    return dict(samples=len(train), seconds=seconds, first_step_s=first, peak_rss_bytes=peak, top1=right / len(test))


def best(folder, seed, precision, threads):
    start = process_start_unix()
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    torch.manual_seed(seed)
    torch.set_num_threads(threads)

    def read(name, offset):
        return torch.from_numpy(np.fromfile(f"{folder}/MNIST/raw/{name}", dtype=np.uint8)[offset:])

    def normalised(x):
        return x.float().mul_(1 / (255 * 0.3081)).sub_(0.1307 / 0.3081)

    images = read("train-images-idx3-ubyte", 16).view(-1, 1, 28, 28)
    labels = read("train-labels-idx1-ubyte", 8).long()
    model = simple_cnn(torch, nn, F, inplace=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    bf16 = precision == "bf16"
    model.train()
    first = None
    begin = time.time()
    order = torch.randperm(len(images))
    for x, y in zip(images[order].split(64), labels[order].split(64)):
        x = normalised(x)
        if bf16:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(x)
            out = out.float()
        else:
            out = model(x)
        F.cross_entropy(out, y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if first is None:
            first = time.time() - start
    seconds = time.time() - begin
    peak = peak_rss_bytes()
    model.eval()
    test, test_labels = read("t10k-images-idx3-ubyte", 16).view(-1, 1, 28, 28), read("t10k-labels-idx1-ubyte", 8).long()
    with torch.no_grad():
        right = sum((model(normalised(x)).argmax(1) == y).sum().item()
                    for x, y in zip(test.split(1000), test_labels.split(1000)))
    return dict(samples=len(images), seconds=seconds, first_step_s=first, peak_rss_bytes=peak, top1=right / len(test))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["tutorial", "best"])
    parser.add_argument("folder")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.kind == "tutorial":
        result = tutorial(args.folder, args.seed)
    else:
        result = best(args.folder, args.seed, args.precision, args.threads)
    result["samples_per_second"] = result["samples"] / result["seconds"]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
