"""Loading a checkpoint's tensors from the page cache in Python, into a module that is there, by mapping the file.

Prints {"first_s", "load_s"}: of the first time, and the best of three. Nothing is hashed.
"""
import argparse
import json
import pathlib
import tempfile
import time

import safetensors.torch
import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["safetensors", "torch.load"], required=True)
    parser.add_argument("--file", type=pathlib.Path, required=True, help="a safetensors file")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for a file of torch.save")
    options = parser.parse_args()

    def from_safetensors():
        return {name.replace(".", "_"): tensor for name, tensor in safetensors.torch.load_file(options.file).items()}

    with tempfile.NamedTemporaryFile(dir=options.folder, suffix=".pt") as file:
        tensors = from_safetensors()
        module = nn.Module()
        for name, tensor in tensors.items():
            module.register_buffer(name, torch.ones_like(tensor))
        if options.kind == "torch.load":
            torch.save(tensors, file.name)
        else:
            options.file.read_bytes()
        del tensors
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            if options.kind == "torch.load":
                module.load_state_dict(torch.load(file.name, mmap=True, weights_only=True))
            else:
                module.load_state_dict(from_safetensors())
            times.append(time.perf_counter() - begin)
    print(json.dumps({"first_s": times[0], "load_s": min(times)}))


if __name__ == "__main__":
    main()
