"""`skytrain` is the light program: it neither links nor maps LibTorch, and its verbs without tensors start at once."""
import os
import pathlib
import statistics
import subprocess
import time
from typing import Iterator

import check

LONGEST_START_SECONDS = 0.015
RUNS = 21


def findings(build: pathlib.Path) -> Iterator[str]:
    program = build / "bin" / "skytrain"
    linked = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
    for library in ("libtorch", "libc10", "libgomp", "libcudart"):
        if library in linked:
            yield f"{program}: links {library}"
    # The loader tells of every library that it maps, those of dlopen too.
    loaded = subprocess.run([str(program), "--help"], check=True, capture_output=True, text=True,
                            env={**os.environ, "LD_DEBUG": "files"}).stderr
    if "libstdc++" not in loaded:
        yield "LD_DEBUG=files told nothing: this check sees no libraries"
    if "libtorch" in loaded or "libc10" in loaded:
        yield f"{program} --help: maps LibTorch"

    for arguments in (["--help"], ["--version"]):
        seconds = []
        for _ in range(RUNS):
            began = time.perf_counter()
            subprocess.run([str(program), *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - began)
        # What starting any program costs from here, on this machine at this moment, is not ours.
        floor = []
        for _ in range(RUNS):
            began = time.perf_counter()
            subprocess.run(["/bin/true"], check=True)
            floor.append(time.perf_counter() - began)
        median, of_true = statistics.median(seconds), statistics.median(floor)
        print(f"skytrain {' '.join(arguments)}: median {median * 1e3:.1f} ms of {RUNS} (/bin/true: {of_true * 1e3:.1f} ms)")
        if median > LONGEST_START_SECONDS and median - of_true > LONGEST_START_SECONDS:
            yield f"skytrain {' '.join(arguments)}: takes {median * 1e3:.1f} ms, the limit is {LONGEST_START_SECONDS * 1e3:.0f} ms"


if __name__ == "__main__":
    check.report(findings(check.arguments().build))
