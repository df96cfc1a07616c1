"""Parts of ./dev bench checkpoint: writing and loading 1.2 GB against the bare disk, and loading it against mapped files."""
import os
import pathlib
import shutil
import statistics
import tempfile

from lib import machine, rounds
from lib.intervals import median_interval

IO = machine.ROOT / "build/release/bench/checkpoint_io"
MIB = 1160  # of a write
TURNS = 3  # of a resumed and a fresh run: one of each says little, since a start varies by as much as a load takes


def run_io(*arguments):
    """Our own time is measured several times between the others: the middle one counts."""
    result = rounds.run([IO, *arguments])
    return {**result, "ours_s": statistics.median(result["ours_s"])}


def write(folder):
    """Seconds of raw writes and of a commit of the same bytes, both durable in the end."""
    return run_io("write", folder, MIB)


def drop_from_cache(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def load(folder, recipe, python):
    """recipe(steps): the text of one. Raw reads of a run's checkpoint; the run resumed from what is in no cache, in turns with fresh
    ones, of which the first does not count; then loads from the page cache."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = pathlib.Path(place) / "recipe.yaml"

        def train(steps, *arguments):
            file.write_text(recipe(steps))
            return rounds.run([machine.ROOT / "build/release/bin/skytrain", "train", file, "--json", *arguments])

        fresh = train(2, "--runs", f"{place}/runs")
        run = pathlib.Path(fresh["run_dir"])
        checkpoint = next((run / "checkpoints").glob("step-*"))
        read = run_io("read", checkpoint)
        drop_from_cache(checkpoint / "rank-0-of-1.safetensors")
        fresh_s, resumed_s = [], []
        for steps in range(3, 3 + TURNS):
            checkpoint = next((run / "checkpoints").glob("step-*"))
            drop_from_cache(checkpoint / "rank-0-of-1.safetensors")
            resumed = train(steps, "--runs", f"{place}/runs", "--resume", run)
            assert resumed["steps"] == steps, resumed
            resumed_s.append(resumed["time_to_first_step_s"])
            fresh_s.append(train(2, "--runs", f"{place}/others", "--resume", "never")["time_to_first_step_s"])
            shutil.rmtree(f"{place}/others")
        checkpoint = next((run / "checkpoints").glob("step-*"))
        warm = {"skytrain": rounds.run([IO, "warm", checkpoint])}
        for kind in ("safetensors", "torch.load"):
            warm[kind] = rounds.run([python, machine.ROOT / "bench/checkpoint/python_load.py", "--kind", kind, "--folder", place,
                                     "--file", checkpoint / "rank-0-of-1.safetensors"])
    fresh_s, resumed_s = statistics.median(fresh_s), statistics.median(resumed_s)
    return {"to_first_step_s": resumed_s - fresh_s, "fresh_s": fresh_s, "resumed_s": resumed_s, **read, "warm": warm}


def best_raw(results):
    """The kind of raw access with the best median, which favours it."""
    return min(results[0]["raw_s"], key=lambda kind: statistics.median(r["raw_s"][kind] for r in results))


def write_lines(results):
    kind = best_raw(results)
    ratio = median_interval([r["ours_s"] / r["raw_s"][kind] for r in results])
    rate = {name: statistics.median(r["bytes"] / seconds(r) for r in results) / 1e6
            for name, seconds in (("ours", lambda r: r["ours_s"]), ("raw", lambda r: r["raw_s"][kind]))}
    return ["", f"Write rate: ours {rate['ours']:,.0f} MB/s, raw {rate['raw']:,.0f} MB/s (direct, {kind}; the best of "
            f"{', '.join(results[0]['raw_s'])}).", *rounds.criteria_lines(
                [rounds.criterion("time of a save's writes, of a raw write", ratio, "<= 1.10", lambda x: x <= 1.10)])]


def load_lines(results):
    def middle(value):
        return statistics.median(value(r) for r in results)

    kind = best_raw(results)
    first = median_interval([r["to_first_step_s"] / r["raw_s"][kind] for r in results])
    alone = median_interval([r["ours_s"] / r["raw_s"][kind] for r in results])
    lines = ["", f"Cold load to first step: {middle(lambda r: r['to_first_step_s']):.2f} s (resumed "
             f"{middle(lambda r: r['resumed_s']):.2f} s less fresh {middle(lambda r: r['fresh_s']):.2f} s); the load alone "
             f"{middle(lambda r: r['ours_s']):.2f} s, a raw read {middle(lambda r: r['raw_s'][kind]):.2f} s ({kind}; the best of "
             f"{', '.join(results[0]['raw_s'])}).",
             *rounds.criteria_lines([
                 rounds.criterion("cold load to first step, of a raw read", first, "<= 1.15", lambda x: x <= 1.15),
                 rounds.criterion("cold load alone, of a raw read", alone, "<= 1.15", lambda x: x <= 1.15)]),
             "", "| load from the page cache | first in a process s | best of three s |", "|---|--:|--:|"]
    names = {"skytrain": "skytrain, hash checked", "safetensors": "safetensors, load_state_dict",
             "torch.load": "torch.load(mmap=True), load_state_dict"}
    return lines + [f"| {text} | {middle(lambda r: r['warm'][name]['first_s']):.3f} | {middle(lambda r: r['warm'][name]['load_s']):.3f} |"
                    for name, text in names.items()]
