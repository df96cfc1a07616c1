"""Sides that take turns: running them, and what the rounds say together."""
import json
import os
import statistics
import subprocess
import sys

from lib import machine
from lib.intervals import coverage_of_range, median_interval

# glibc keeps freed activations instead of returning their pages, so that no step takes page faults. The best Python loop
# gets it through the environment; skytrain-worker asks for it itself.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(8 << 30), "MALLOC_TOP_PAD_": str(64 << 20)}


def thread_counts():
    cores = machine.cores()
    return list(range(1, cores + 1)) if cores <= 8 else sorted({1, 2, 4, 8, cores // 2, cores})


def run(command, env=None):
    """The JSON of the last line that the command prints; ends the benchmark when the command fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **(env or {})},
                          cwd=machine.ROOT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexited with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(sides, rounds, patience, show):
    """sides: functions by name, each of which gives a dict of figures; show: the text of one of them. A round runs each side
    once, the next one begins with another. Returns a list by name: figures, busy_before (cores), calibration_ms, round."""
    results = {name: [] for name in sides}
    names = list(sides)
    for index in range(rounds):
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            busy = machine.wait_until_quiet(patience=patience)
            calibration = machine.calibration_ms()
            result = sides[name]()
            results[name].append({**result, "busy_before": busy, "calibration_ms": calibration, "round": index})
            print(f"  round {index + 1}/{rounds}  {name:26} {show(result)}", file=sys.stderr, flush=True)
    return results


def median(results, name, key):
    return statistics.median(r[key] for r in results[name])


def ratio(results, name, peer, key):
    """(median, low, high) of the ratios within a round."""
    return median_interval([a[key] / b[key] for a, b in zip(results[name], results[peer])])


def criterion(what, value, limit, holds):
    """A row of the table of criteria; value: (median, low, high)."""
    middle, low, high = value
    return what, f"{middle:.3g} [{low:.3g}, {high:.3g}]", limit, holds(middle)


def criteria_lines(rows):
    return ["", "| ratio, within a round | median and interval | wanted | |", "|---|--:|--:|---|"] + [
        f"| {what} | {value} | {limit} | {'reached' if holds else 'NOT reached'} |" for what, value, limit, holds in rows]


def conditions(results, rounds):
    """How the intervals were made and what the machine was like."""
    calibration = [r["calibration_ms"] for runs in results.values() for r in runs]
    busy = max(r["busy_before"] for runs in results.values() for r in runs)
    covered = "95 %" if rounds >= 6 else f"the range of {rounds} rounds, {100 * coverage_of_range(rounds):.0f} %"
    lines = ["", f"Intervals: {covered} (sign test). Calibration job {min(calibration):.0f} to {max(calibration):.0f} ms; "
             f"at most {busy:.2f} cores busy before a run."]
    if busy >= 0.25:
        lines.append("The machine was not quiet: do not trust this run.")
    return lines


def publish(name, heading, lines, results, record):
    """Prints the result and keeps the raw figures in build/bench; record: appends it to bench/RESULTS.md."""
    print("\n".join(heading + lines))
    raw = machine.ROOT / "build/bench"
    raw.mkdir(parents=True, exist_ok=True)
    (raw / f"{name}.json").write_text(json.dumps(results, indent=1))
    if record:
        with open(machine.ROOT / "bench/RESULTS.md", "a") as file:
            file.write("\n".join(["", *heading, *lines, ""]))
