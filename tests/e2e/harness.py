"""Runs the real skytrain on small data sets made on the fly. Standard library only.

Everything a test makes lies in its own folder; nothing is shared between tests but the program. Pictures come from
SHAKE-128 of their number, so that two machines make the same bytes.
"""
import collections
import gzip
import hashlib
import json
import os
import pathlib
import re
import shlex
import signal
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds after which a hanging program is a failure; nothing waits that long when all is well


def binary():
    path = pathlib.Path(os.environ.get("SKYTRAIN_BIN", ROOT / "build/release/bin/skytrain"))
    assert os.access(path, os.X_OK), f"{path} is no program: ./dev build makes it, SKYTRAIN_BIN names another"
    return str(path)


# ---------------------------------------------------------------------------------------------------------------------
# data

def idx_bytes(magic, dimensions, content):
    return struct.pack(f">{1 + len(dimensions)}I", magic, *dimensions) + content


def pictures(count, side, classes, stream):
    """`count` pictures of `side` x `side` and their labels: a class's own picture, half of it noise."""
    pixels = side * side
    prototypes = [hashlib.shake_128(b"class %d" % c).digest(pixels) for c in range(classes)]
    images, labels = bytearray(), bytearray()
    for i in range(count):
        label = hashlib.sha256(b"%s label %d" % (stream, i)).digest()[0] % classes
        noise = hashlib.shake_128(b"%s picture %d" % (stream, i)).digest(pixels)
        images += bytes((a + b) // 2 for a, b in zip(prototypes[label], noise))
        labels.append(label)
    return bytes(images), bytes(labels)


def write_idx(folder, train=256, test=64, side=12, classes=10, gz=True):
    """The four files of an MNIST-like data set in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, count in (("train", train), ("t10k", test)):
        images, labels = pictures(count, side, classes, prefix.encode())
        for name, data in ((f"{prefix}-images-idx3-ubyte", idx_bytes(0x803, (count, side, side), images)),
                           (f"{prefix}-labels-idx1-ubyte", idx_bytes(0x801, (count,), labels))):
            if gz:
                (folder / (name + ".gz")).write_bytes(gzip.compress(data, 1, mtime=0))
            else:
                (folder / name).write_bytes(data)
    return folder


RECIPE = """\
version: 1
name: {name}
seed: 7
model: {model}
data:
  train: {{path: {data}, format: idx, split: train}}
  eval: {{path: {data}, format: idx, split: test}}
  transforms:
    - normalize: {{mean: [0.5], std: [0.25]}}
train:
  {length}
  batch: {batch}
  optimizer: {optimizer}
  schedule: {schedule}
  precision: fp32
eval: {{batch: 32, every: {eval_every}}}
checkpoint: {{every: [{checkpoint_every}], keep: {keep}}}
elastic: {{max_restarts: {max_restarts}}}
devices: {devices}
"""


def recipe_text(**values):
    defaults = dict(name="case", model="{name: simplecnn, classes: 10}", data="mnist", length="epochs: 2", batch=16,
                    optimizer="{name: sgd, lr: 0.01, momentum: 0.9}", schedule="{name: cosine, warmup: 10%}",
                    eval_every="1 epoch", checkpoint_every="1 epoch", keep=3, max_restarts=0, devices=2)
    return RECIPE.format(**{**defaults, **values})


# ---------------------------------------------------------------------------------------------------------------------
# the program

class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json_lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def summary(self):
        return self.json_lines[-1]

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Program:
    """A started skytrain. Use as a context manager: whatever is left of it is killed at the end."""

    def __init__(self, arguments, cwd, env=None, **popen):
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        self.worker_pid = None
        self.process = subprocess.Popen([binary(), *map(str, arguments)], cwd=cwd, text=True, errors="replace",
                                        env={**os.environ, **(env or {})}, **popen)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        worker = self.find_worker()
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        self.process.wait()
        if worker and is_running(worker):
            os.kill(worker, signal.SIGKILL)

    def find_worker(self):
        """pid of the worker once there is one; remembered, since a killed parent has no children."""
        try:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except OSError:
            children = []
        for child in map(int, children):
            if is_running(child):
                self.worker_pid = child
        return self.worker_pid

    def wait_for_worker(self):
        wait_until(lambda: self.find_worker() or self.process.poll() is not None, "the worker to start")
        return self.worker_pid

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self, timeout=PATIENCE):
        out, err = self.process.communicate(timeout=timeout)
        return Result(self.process.returncode, out or "", err or "")


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def wait_until(condition, what, timeout=PATIENCE, every=0.002):
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {timeout} s for {what}"
        time.sleep(every)
    return value


class Workplace:
    """A folder with a recipe, a data set and runs."""

    def __init__(self, folder):
        self.folder = folder
        self.runs = folder / "runs"

    def write_recipe(self, name="recipe.yaml", **values):
        (self.folder / name).write_text(recipe_text(**values))
        return name

    def run(self, *arguments, **options):
        with Program(arguments, self.folder, **options) as program:
            return program.finish()

    def train(self, *arguments, recipe="recipe.yaml", **options):
        return self.run("train", recipe, "--json", "--log-every", 1, *arguments, **options)

    def start_training(self, *arguments, recipe="recipe.yaml", **options):
        return Program(["train", recipe, "--json", "--log-every", 1, *arguments], self.folder, **options)

    def run_directories(self, name="case"):
        """Newest last."""
        return sorted(path for path in (self.runs / name).glob("*") if (path / "run.json").exists())

    def run_directory(self, name="case"):
        directories = self.run_directories(name)
        assert len(directories) == 1, f"expected one run, found {directories}"
        return directories[0]


# ---------------------------------------------------------------------------------------------------------------------
# what a run leaves behind

def metrics(run, kind="steps"):
    """Lines of metrics.jsonl: of training steps, or of evaluations."""
    path = run / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if ("eval" in line) == (kind == "evaluations")]


def logged_steps(run):
    """Steps that metrics.jsonl names by now, while the run may be writing it."""
    try:
        return [int(m) for m in re.findall(r'"step":(\d+)', (run / "metrics.jsonl").read_text(errors="replace"))]
    except OSError:
        return []


def checkpoints(run):
    """Committed checkpoints: {step: folder}."""
    found = {}
    for path in (run / "checkpoints").glob("step-*"):
        if path.name.endswith(".tmp"):
            continue
        try:
            found[json.loads((path / "manifest.json").read_text())["step"]] = path
        except FileNotFoundError:  # a run that goes on has removed it in this moment
            pass
    return found


def tensors_of(checkpoint):
    """{name: (dtype, shape, bytes)} of a checkpoint's safetensors files, read with nothing of ours."""
    tensors = {}
    for path in sorted(checkpoint.glob("*.safetensors")):
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        for name, info in header.items():
            if name != "__metadata__":
                begin, end = info["data_offsets"]
                tensors[name] = (info["dtype"], tuple(info["shape"]), content[8 + length + begin:8 + length + end])
    return tensors


def newest_state(run):
    saved = checkpoints(run)
    assert saved, f"{run} has no checkpoint"
    return tensors_of(saved[max(saved)])


def assert_same_training(run, reference):
    """The two runs went the same way: weights and optimizer state bit for bit, each step once with the same loss."""
    ours, theirs = newest_state(run), newest_state(reference)
    assert ours.keys() == theirs.keys()
    different = [name for name in ours if ours[name] != theirs[name]]
    assert not different, f"differ from the uninterrupted run: {different}"
    steps = [line["step"] for line in metrics(run)]
    expected = [line["step"] for line in metrics(reference)]
    missing = set(expected) - set(steps)
    twice = [step for step, times in collections.Counter(steps).items() if times > 1]
    assert steps == expected, f"missing steps {sorted(missing)[:9]}, repeated {twice[:9]}, or out of order"
    for key in ("loss", "lr", "samples", "epoch"):
        assert [line[key] for line in metrics(run)] == [line[key] for line in metrics(reference)], key
    ours, theirs = ([(line["step"], line["eval"]["loss"]) for line in metrics(which, "evaluations")]
                    for which in (run, reference))
    assert ours == theirs, f"evaluations {ours}, of the uninterrupted run {theirs}"


def resume_command_in(text):
    """The command that an interrupted run printed, as words."""
    lines = [line for line in text.splitlines() if "resume with: " in line]
    assert lines, f"no resume command in:\n{text}"
    return shlex.split(lines[-1].split("resume with: ", 1)[1])
