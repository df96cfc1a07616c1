#!/usr/bin/python3
"""Whether SkyTrain learns as well as Python: top-1 of a short CIFAR-10 training of ResNet-18, mean over seeds on each side.

    bench/cifar/accuracy.py [--data FOLDER] [--seeds N] [--train N] [--test N] [--epochs N]

FOLDER holds CIFAR-10's binary version, data_batch_*.bin and test_batch.bin (`recipes/cifar10_resnet18.yaml` says how to fetch
it), or numbered parts of the same records, *_0.bin.gz and so on, of which the last is the test set. Both sides train on the
same first --train images. Exits 1 when the means differ by more than two standard errors and 0.3 point.

On two cores a run of 3 epochs of 3,000 images takes two to three minutes, and there are 2 runs a seed.
"""
import argparse
import gzip
import math
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import machine, peers  # noqa: E402
from lib.rounds import MALLOC, run  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
RECIPE = "recipes/cifar10_resnet18.yaml"
RECORD = 1 + 3 * 32 * 32
TRAIN_FILES = 5  # of the data set; each gets its part of the images
SHARED = pathlib.Path(os.environ.get("SKYTRAIN_SHARED", machine.ROOT.parent / "shared")) / "data/cifar10"


def records(files, most):
    """The first `most` records of the files, laid end to end."""
    content = b"".join((gzip.open(file) if file.suffix == ".gz" else open(file, "rb")).read() for file in files)
    if not content or len(content) % RECORD != 0:
        sys.exit(f"{files[0].parent}: {len(content)} bytes are no whole number of records of {RECORD} bytes")
    return content[:most * RECORD]


def subset(source, folder, train, test):
    """Writes the images that both sides use to `folder`, under the data set's names; returns how many (train, test)."""
    of_train, of_test = sorted(source.glob("data_batch_*.bin")), [source / "test_batch.bin"]
    if not of_train:
        parts = sorted(source.glob("*_[0-9].bin.gz"))
        of_train, of_test = parts[:-1], parts[-1:]
    if not of_train or not of_test[0].exists():
        sys.exit(f"{source}: no data_batch_*.bin and test_batch.bin; {RECIPE} says how to fetch them, --data names another "
                 "folder")
    content = records(of_train, train)
    count = len(content) // RECORD
    cuts = [index * count // TRAIN_FILES * RECORD for index in range(TRAIN_FILES + 1)]
    for index in range(TRAIN_FILES):
        (folder / f"data_batch_{index + 1}.bin").write_bytes(content[cuts[index]:cuts[index + 1]])
    content = records(of_test, test)
    (folder / "test_batch.bin").write_bytes(content)
    return count, len(content) // RECORD


def ours(args, folder, seed):
    settings = {"seed": seed, "train.epochs": args.epochs, "train.batch": args.batch, "train.optimizer.lr": args.lr,
                "train.slot": args.batch, "devices": 1,  # batch norm sees what Python's does
                "train.precision": args.precision, "eval.every": f"{args.epochs} epochs",
                "data.train.path": folder, "data.eval.path": folder}
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    runs = folder / "runs"
    summary = run([args.binary, "train", RECIPE, "--resume", "never", "--json", "--quiet", "--runs", runs, *sets])
    shutil.rmtree(runs)
    return summary["eval"]


def theirs(args, python, folder, seed):
    return run([python, HERE / "python_train.py", folder, "--seed", seed, "--epochs", args.epochs, "--batch", args.batch,
                "--lr", args.lr, "--precision", args.precision, "--threads", machine.cores()], MALLOC)


def verdict(a, b):
    """(whether the means agree, difference, what it may be). a, b: top-1 of each seed."""
    error = math.sqrt(sum(statistics.variance(side) / len(side) for side in (a, b)))
    difference, allowed = statistics.mean(a) - statistics.mean(b), 2 * error + 0.003
    return abs(difference) <= allowed, difference, allowed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = machine.ROOT / "data/cifar10"
    parser.add_argument("--data", type=pathlib.Path, default=own if own.exists() else SHARED)
    parser.add_argument("--seeds", type=int, default=3, help="2 or more")
    parser.add_argument("--train", type=int, default=3000, help="images to train on")
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--binary", type=pathlib.Path, default=machine.ROOT / "build/release/bin/skytrain")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error("--seeds: two or more are needed for a standard deviation")
    args.binary = args.binary.resolve()
    if not args.binary.exists():
        sys.exit(f"{args.binary} is missing: ./dev build makes it")
    python = peers.python()
    sides = {"skytrain": [], "Python": []}
    with tempfile.TemporaryDirectory(prefix="skytrain-accuracy-") as name:
        folder = pathlib.Path(name)
        counts = subset(args.data, folder, args.train, args.test)
        print(f"{counts[0]:,} images to train on, {counts[1]:,} to test, {args.epochs} epochs, {args.precision}", flush=True)
        for seed in range(args.seeds):
            sides["skytrain"].append(ours(args, folder, seed)["top1"])
            sides["Python"].append(theirs(args, python, folder, seed)["top1"])
            print(f"seed {seed}: " + ", ".join(f"{side} {100 * top1[-1]:.2f} %" for side, top1 in sides.items()), flush=True)
    for side, top1 in sides.items():
        print(f"{side}: mean {100 * statistics.mean(top1):.2f} %, standard deviation {100 * statistics.stdev(top1):.2f}")
    good, difference, allowed = verdict(sides["skytrain"], sides["Python"])
    print(f"difference {100 * difference:+.2f} points, allowed {100 * allowed:.2f} (two standard errors and 0.3): "
          f"{'within noise' if good else 'NOT within noise'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
