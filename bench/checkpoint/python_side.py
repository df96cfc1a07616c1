"""Training steps of an MLP of 100 million parameters with AdamW in PyTorch, saved in one of its ways.

Prints {"step_s": [...], "blocked_s": [...]}: the time of each step with the save that follows it, and how long each save
held up the loop. Files are made durable, as ours are: fsync of each.
"""
import argparse
import json
import os
import pathlib
import shutil
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict


def sync_all(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


class Saver:
    """Checkpoints of one kind; the one before the last is removed, as `keep: 1` does."""

    def __init__(self, kind, model, optimizer, folder):
        self.kind, self.model, self.optimizer, self.folder = kind, model, optimizer, folder
        self.pending = None
        self.last = None

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def save(self, step):
        path = self.folder / f"step-{step}"
        if self.kind == "torch.save":
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)
            sync_all(path)
            self.forget(path)
        elif self.kind == "dcp.save":
            dcp.save(self.state(), checkpoint_id=path)
            sync_all(path)
            self.forget(path)
        elif self.kind == "async_save":
            self.wait()
            future = dcp.async_save(self.state(), checkpoint_id=path)

            def finish():
                future.result()
                sync_all(path)
                self.forget(path)

            self.pending = threading.Thread(target=finish)
            self.pending.start()

    def forget(self, path):
        if self.last:
            shutil.rmtree(self.last) if self.last.is_dir() else self.last.unlink()
        self.last = path

    def wait(self):
        if self.pending:
            self.pending.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["none", "torch.save", "dcp.save", "async_save"], required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    options = parser.parse_args()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(1)
    width = options.width
    layers = [layer for _ in range(options.layers) for layer in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loss = nn.CrossEntropyLoss()
    images, labels = torch.randn(options.batch, width), torch.randint(10, (options.batch,))
    folder = pathlib.Path(tempfile.mkdtemp(dir=options.folder))
    saver = Saver(options.kind, model, optimizer, folder)
    step_s, blocked_s = [], []
    try:
        for step in range(1, options.steps + 1):
            begin = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            loss(model(images), labels).backward()
            optimizer.step()
            if step % options.every == 0 and step < options.steps and options.kind != "none":
                before = time.perf_counter()
                saver.save(step)
                blocked_s.append(time.perf_counter() - before)
            step_s.append(time.perf_counter() - begin)
        saver.wait()
    finally:
        shutil.rmtree(folder)
    print(json.dumps({"step_s": step_s, "blocked_s": blocked_s}))


if __name__ == "__main__":
    main()
