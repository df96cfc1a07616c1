"""The machine that a benchmark runs on: what it is, whether it is quiet, how fast it is right now."""
import datetime
import hashlib
import os
import pathlib
import platform
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cores():
    return len(os.sched_getaffinity(0))


def busy_cores(seconds=0.3):
    """Cores' worth of work that the whole machine does."""
    def read():
        with open("/proc/stat") as file:
            values = [int(x) for x in file.readline().split()[1:9]]
        return sum(values) - values[3] - values[4], sum(values)
    a = read()
    time.sleep(seconds)
    b = read()
    return (b[0] - a[0]) / max(1, b[1] - a[1]) * os.cpu_count()


def wait_until_quiet(limit=0.25, patience=60):
    """Waits until less than `limit` cores are busy; returns what was busy in the end."""
    end = time.monotonic() + patience
    while True:
        busy = busy_cores()
        if busy < limit or time.monotonic() > end:
            return busy
        time.sleep(0.5)


def calibration_ms():
    """Milliseconds for a fixed job (SHA-256 of 32 MiB and a Python loop): shows a slow or disturbed period."""
    content = bytearray(1 << 25)
    begin = time.perf_counter()
    hashlib.sha256(content).digest()
    total = 0
    for i in range(200000):
        total += i
    return (time.perf_counter() - begin) * 1e3


def describe():
    model, memory = platform.machine(), 0
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / (1 << 20)
    return f"{cores()} cores of {model}, {memory:.0f} GiB, Linux {platform.release()}"


def commit():
    done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
