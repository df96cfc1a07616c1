#!/usr/bin/python3
"""Whether SkyTrain learns as well as Python: top-1 after one epoch of MNIST, the mean over seeds on each side.

    bench/mnist/accuracy.py [--seeds N]       exits 1 when the means differ by more than 0.3 point, or ours is below 97 %
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import machine, peers  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def load_run():
    """bench/mnist/run as a module: it has the sides."""
    import importlib.machinery
    import importlib.util
    loader = importlib.machinery.SourceFileLoader("mnist_run", str(HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mnist_run", loader))
    loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--binary", type=pathlib.Path, default=machine.ROOT / "build/release/bin/skytrain")
    args = parser.parse_args()
    mnist = load_run()
    python = peers.python()
    failed = False
    with tempfile.TemporaryDirectory(prefix="skytrain-accuracy-") as name:
        folder = pathlib.Path(name)
        sides = mnist.Sides(args.binary.resolve(), python, folder)
        for precision in ("fp32", "bf16"):
            ours, theirs = [], []
            for seed in range(args.seeds):
                ours.append(mnist.run([sides.binary, "train", "recipes/mnist_simplecnn.yaml", "--resume", "never", "--json",
                                       "--quiet", "--runs", folder / "runs", "--set", f"seed={seed}", "--set",
                                       f"train.precision={precision}"])["eval"]["top1"])
                theirs.append(mnist.run([python, HERE / "python_loop.py", "best", folder, "--precision", precision,
                                         "--threads", machine.cores(), "--seed", seed])["top1"])
            difference = statistics.mean(ours) - statistics.mean(theirs)
            good = abs(difference) <= 0.003 and statistics.mean(ours) >= 0.970
            failed |= not good
            print(f"{precision}: skytrain {100 * statistics.mean(ours):.2f} % {ours}, Python {100 * statistics.mean(theirs):.2f} % "
                  f"{theirs}, difference {100 * difference:+.2f} points: {'good' if good else 'NOT good'}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
