#!/usr/bin/env python3
"""Python PyTorch opens our .pt files, and we read its: bit for bit, with weights_only=True.

usage: judge_pt.py [RUN_DIR]     RUN_DIR: a run whose newest checkpoint is converted too

Files that torch.save wrote (in both of its forms, with random dtypes, shapes and views), and this repository's fixtures,
go through build/release/test/weights_convert to .pt and .safetensors; what Python reads from those must be what it reads
from the original. PyTorch comes from .deps/peers, as for the benchmarks.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONVERT = ROOT / "build" / "release" / "test" / "weights_convert"
FIXTURES = ROOT / "tests" / "testdata" / "weights"

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError:
    if os.environ.get("SKYTRAIN_JUDGE_AGAIN"):
        raise
    sys.path.insert(0, str(ROOT / "bench"))
    from lib import peers
    python = peers.python()
    os.execve(python, [python, *sys.argv], {**os.environ, "SKYTRAIN_JUDGE_AGAIN": "1"})

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool]
problems = []


def problem(text):
    print(text)
    problems.append(text)


def convert(source, target):
    done = subprocess.run([CONVERT, source, target], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        problem(f"{source}: {done.stderr.strip()}")
        return None
    return json.loads(done.stdout)


def bits(tensor):
    plain = tensor.detach().clone(memory_format=torch.contiguous_format)
    return plain.dtype, tuple(plain.shape), plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def compare(name, expected, found):
    if list(expected) != list(found):
        problem(f"{name}: names {list(found)[:5]}…, expected {list(expected)[:5]}…")
        return
    for key, tensor in expected.items():
        if bits(tensor) != bits(found[key]):
            problem(f"{name}: {key} differs: {found[key].dtype} {tuple(found[key].shape)}, expected {tensor.dtype} "
                    f"{tuple(tensor.shape)}")


def judge_file(source, expected, folder):
    """Reads `source` with ours, writes both formats, and lets Python read those."""
    pt, safetensors = folder / "ours.pt", folder / "ours.safetensors"
    if convert(source, pt) is None or convert(source, safetensors) is None:
        return
    compare(f"{source.name} as .pt", expected, torch.load(pt, weights_only=True))
    compare(f"{source.name} as .pt, mapped", expected, torch.load(pt, weights_only=True, mmap=True))
    compare(f"{source.name} as .safetensors", dict(sorted(expected.items())), dict(sorted(load_file(safetensors).items())))
    with zipfile.ZipFile(pt) as archive:
        bad = archive.testzip()
        if bad is not None:
            problem(f"{source.name}: zipfile finds {bad} damaged")
    # Ours from ours: the same bytes again.
    again = folder / "again.pt"
    convert(pt, again)
    if pt.read_bytes() != again.read_bytes():
        problem(f"{source.name}: our own .pt does not come back the same")


def random_tensor(rng):
    dtype = rng.choice(DTYPES)
    shape = [rng.choice([0, 1, 1, 2, 3, 5, 8]) for _ in range(rng.randrange(0, 5))]
    count = max(1, int(torch.tensor(shape, dtype=torch.int64).prod())) if shape else 1
    raw = torch.tensor([rng.randrange(256) for _ in range(count * 8)], dtype=torch.uint8)
    flat = raw % 2 == 1 if dtype is torch.bool else raw.view(dtype)  # any bits, NaNs too
    tensor = flat[:count].clone()
    if 0 in shape:
        return torch.zeros(shape, dtype=dtype)
    tensor = tensor.reshape(shape)
    if tensor.dim() > 1 and rng.random() < 0.5:
        tensor = tensor.permute(*rng.sample(range(tensor.dim()), tensor.dim()))
    if tensor.dim() and rng.random() < 0.4:
        tensor = tensor[rng.randrange(tensor.shape[0]):]
    if tensor.dim() and rng.random() < 0.3:
        tensor = tensor[..., ::2]
    if rng.random() < 0.1:
        tensor = tensor.unsqueeze(0).expand(3, *tensor.shape)
    return torch.nn.Parameter(tensor, requires_grad=False) if rng.random() < 0.2 else tensor


def random_state(rng):
    state = {}
    for i in range(rng.randrange(1, 40)):
        state[f"layer{i}.{'ä' * rng.randrange(2)}weight"] = random_tensor(rng)
    for name in rng.sample(list(state), min(3, len(state))):  # tied, and views of the same storage
        state[name + ".tied"] = state[name]
        if state[name].dim():
            state[name + ".part"] = state[name][:1]
    return state


def judge_random(folder, count):
    seed = int(os.environ.get("SKYTRAIN_SEED", "20"))
    rng = random.Random(seed)
    for i in range(count):
        state = random_state(rng)
        for name, how in (("zip", {}), ("legacy", {"_use_new_zipfile_serialization": False}),
                          ("zip5", {"pickle_protocol": 5})):
            path = folder / f"{name}-{seed}-{i}.pt"
            torch.save(state, path, **how)
            judge_file(path, state, folder)
            path.unlink()
    return count * 3


def judge_fixtures(folder):
    expected = json.loads((FIXTURES / "expected.json").read_text())
    for name, entry in expected.items():
        if "refused" in entry:
            done = subprocess.run([CONVERT, FIXTURES / name, folder / "none.pt"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode != 4:
                problem(f"{name}: exit code {done.returncode}, expected 4")
            continue
        types = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
                 "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
                 "BOOL": torch.bool}
        state = {}
        for key, dtype, shape, text in entry["arrays"]:
            content = bytearray.fromhex(text)
            state[key] = (torch.frombuffer(content, dtype=types[dtype]).reshape(shape) if content else
                          torch.zeros(shape, dtype=types[dtype]))
        judge_file(FIXTURES / name, state, folder)
    return len(expected)


def judge_model(folder):
    """A state dict of ours is loaded by a module, strictly."""
    torch.manual_seed(1)
    def model():
        return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.LazyLinear(4))
    first, second = model(), model()
    x = torch.randn(2, 3, 9, 9)
    first(x), second(x)
    first.eval(), second.eval()
    torch.save({"model": torch.nn.DataParallel(first).state_dict(), "epoch": 1}, folder / "model.pth")
    said = convert(folder / "model.pth", folder / "model.pt")
    if said is None:
        return
    if "DataParallel" not in said["note"] or said["ignored"] != 1:
        problem(f"model.pth: {said}")
    second.load_state_dict(torch.load(folder / "model.pt", weights_only=True), strict=True)
    if not torch.equal(first(x), second(x)):
        problem("model.pth: the module with our weights computes something else")


def judge_run(run, folder):
    newest = max((run / "checkpoints").glob("step-*"))
    for path in newest.glob("*.safetensors"):
        judge_file(path, dict(sorted(load_file(path).items())), folder)


def main():
    if not CONVERT.exists():
        sys.exit(f"{CONVERT} is not there: ./dev build")
    with tempfile.TemporaryDirectory(prefix="skytrain-judge-") as name:
        folder = pathlib.Path(name)
        files = judge_fixtures(folder) + judge_random(folder, 40)
        judge_model(folder)
        save_file({"b": torch.arange(12.0).reshape(3, 4), "a": torch.ones(2).half()}, folder / "theirs.safetensors")
        judge_file(folder / "theirs.safetensors", {"a": torch.ones(2).half(), "b": torch.arange(12.0).reshape(3, 4)}, folder)
        for run in sys.argv[1:]:
            judge_run(pathlib.Path(run), folder)
    print(f"{'FAILED' if problems else 'ok'}: {files} files of PyTorch {torch.__version__} and our .pt of each")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
