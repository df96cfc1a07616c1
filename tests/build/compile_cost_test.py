"""The build stays affordable: few units include LibTorch, and none takes long to compile.

Reads what ninja knows of the build folder: the headers of every object, and how long each took. Where a unit seems slow,
it is compiled once more, alone and past the compiler cache, and judged by the processor time, because the wall time of a
busy machine says nothing. A unit that came from the cache keeps no time; the first build on a machine is the one that
measures it.
"""
import json
import pathlib
import re
import resource
import shlex
import subprocess
import tempfile
from typing import Iterator

import check

MOST_TORCH_UNITS = 80
LONGEST_SECONDS = 30
TORCH_HEADER = re.compile(r"(/include/(torch|ATen|c10)/|cmake_pch\.hxx)")


def torch_units(deps: str) -> list[str]:
    """Objects whose headers include LibTorch's, from the output of `ninja -t deps`."""
    units, unit = [], ""
    for line in deps.splitlines():
        if line and not line[0].isspace():
            unit = line.split(": #deps")[0]
        elif unit and unit.endswith(".o") and TORCH_HEADER.search(line):
            units.append(unit)
            unit = ""
    return units


def compile_seconds(log: str) -> dict[str, float]:
    """Object -> seconds of its last compilation, from .ninja_log. A precompiled header is no unit."""
    seconds = {}
    for line in log.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith(".o"):
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def processor_seconds(build: pathlib.Path, unit: str) -> float:
    """Compiles one unit again, alone, past ccache."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if "-o" in words and words[words.index("-o") + 1] == unit:
            break
    else:
        return 0.0  # of an earlier state of the tree
    if pathlib.Path(words[0]).name == "ccache":
        words = words[1:]
    with tempfile.NamedTemporaryFile(suffix=".o") as output:
        words[words.index("-o") + 1] = output.name
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, cwd=entry["directory"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def findings(build: pathlib.Path) -> Iterator[str]:
    deps = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], check=True, capture_output=True, text=True).stdout
    units = torch_units(deps)
    seconds = compile_seconds((build / ".ninja_log").read_text())
    if not seconds:
        yield f"{build}/.ninja_log: holds no compilation"
        return
    slowest = max(seconds, key=seconds.__getitem__)
    print(f"{len(units)} of {len(seconds)} units include LibTorch (at most {MOST_TORCH_UNITS}); "
          f"slowest: {slowest} {seconds[slowest]:.1f} s")
    if len(units) > MOST_TORCH_UNITS:
        yield f"{len(units)} units include LibTorch, the limit is {MOST_TORCH_UNITS}"
    for unit, wall in sorted(seconds.items()):
        if wall > LONGEST_SECONDS:
            alone = processor_seconds(build, unit)
            if alone > LONGEST_SECONDS:
                yield f"{unit}: takes {alone:.1f} s of processor time to compile, the limit is {LONGEST_SECONDS} s"


def self_test() -> None:
    deps = ("a.cc.o: #deps 2, deps mtime 1 (VALID)\n    /x/a.cc\n    /x/include/ATen/Tensor.h\n"
            "b.cc.o: #deps 1, deps mtime 1 (VALID)\n    /x/b.cc\n"
            "c.cc.o: #deps 1, deps mtime 1 (VALID)\n    CMakeFiles/c.dir/cmake_pch.hxx.gch\n"
            "cmake_pch.hxx.gch: #deps 1, deps mtime 1 (VALID)\n    /x/include/torch/torch.h\n")
    assert torch_units(deps) == ["a.cc.o", "c.cc.o"]
    log = "# ninja log v5\n0\t40000\t1\ta.cc.o\tff\n0\t500\t1\tlib.a\tff\n10\t2010\t1\ta.cc.o\tff\n"
    assert compile_seconds(log) == {"a.cc.o": 2.0}


if __name__ == "__main__":
    self_test()
    check.report(findings(check.arguments().build))
