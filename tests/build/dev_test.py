"""./dev says in one line what is wrong, what to do next, and exits with the right code.

Each case runs the real script in a copy of the tree's scripts, with small programs put before the real ones in PATH that
pretend another machine: no packages, no disk, no apt, no network.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Iterator, Optional

import check

NOTHING_INSTALLED = {"dpkg-query": "exit 1"}
ALL_INSTALLED = {"dpkg-query": 'shift 3; for p in "$@"; do echo "$p installed"; done'}
NO_NETWORK = {"apt-get": 'echo "Temporary failure resolving"; exit 100'}
# name, arguments, environment, pretended programs, user id to run as, exit code, words of the error
Case = tuple[str, list[str], dict[str, str], dict[str, str], Optional[int], int, list[str]]
CASES: list[Case] = [
    ("an unknown verb", ["tset"], {}, {}, None, 2, ["unknown verb 'tset'", "./dev help"]),
    ("an unknown preset", ["build", "relaese"], {}, ALL_INSTALLED, None, 2, ["unknown preset 'relaese'", "release"]),
    ("another processor", ["build"], {}, {"uname": 'echo "Linux aarch64"'}, None, 5, ["aarch64", "x86_64"]),
    ("missing packages without root", ["setup"], {}, NOTHING_INSTALLED, 65534, 5,
     ["packages are missing", "sudo apt-get update && sudo apt-get install -y --no-install-recommends g++ cmake"]),
    ("no network for apt", ["setup"], {}, NOTHING_INSTALLED | NO_NETWORK, 0, 5,
     ["no network", "SKYTRAIN_APT_MIRROR"]),
    ("a mirror of the user's", ["setup"], {"SKYTRAIN_APT_MIRROR": "http://mirror.invalid/debian"},
     NOTHING_INSTALLED | {"apt-get": 'echo "$@"; exit 100'}, 0, 5, ["Dir::Etc::sourcelist="]),
    ("a TORCH_ROOT that is none", ["setup"], {"TORCH_ROOT": "/usr"}, ALL_INSTALLED, None, 5,
     ["TORCH_ROOT=/usr", "libtorch_cpu.so"]),
    ("an unknown LibTorch", ["setup"], {"LIBTORCH": "9.9"}, ALL_INSTALLED, None, 2, ["LIBTORCH=9.9", "2.11.0", "2.7.1"]),
    ("too little disk", ["setup"], {}, ALL_INSTALLED | {"df": "echo Avail; echo 1048576"}, None, 5,
     ["1024 MiB are free", "4 GiB"]),
    ("no network for LibTorch", ["setup"], {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_RETRIES": "0", "PIP_FIND_LINKS": ""},
     ALL_INSTALLED | {"df": "echo Avail; echo 99999999"}, None, 5, ["could not be fetched", "PIP_INDEX_URL"]),
    ("a count that is none", ["build", "asan"], {"SKYTRAIN_JOBS": "many"},
     ALL_INSTALLED | {"cmake": 'mkdir -p build/asan && touch build/asan/build.ninja'}, None, 2, ["SKYTRAIN_JOBS=many"]),
    ("a benchmark that is not there", ["bench", "nothing"], {},
     ALL_INSTALLED | {"cmake": "mkdir -p build/release", "ninja": "exit 0"}, None, 2, ["no 'nothing' in bench"]),
    ("a fuzz target that is not there", ["fuzz", "5", "pictures"], {}, {}, None, 2, ["no fuzz target 'pictures'", "picture"]),
    ("seconds that are none, by the old name", ["soak", "fuzz", "long"], {}, {}, None, 2, ["'long'", "./dev fuzz [SECONDS"]),
    ("a build that fails", ["build", "asan"], {},
     ALL_INSTALLED | {"cmake": "mkdir -p build/asan", "ninja": 'echo "x.cc:1: error: bad"; exit 1'}, None, 1,
     ["x.cc:1: error: bad", "build-asan.log", "the build failed"]),
]


def copy_scripts(source: pathlib.Path, target: pathlib.Path) -> None:
    shutil.copytree(source / "tools", target / "tools")
    for name in ("dev", "CMakePresets.json"):
        shutil.copy2(source / name, target / name)
    for folder in ("bench", "tests"):
        (target / folder).mkdir()


def run(case: Case, source: pathlib.Path) -> Iterator[str]:
    name, arguments, variables, programs, user, code, words = case
    if user == 0 and os.geteuid() != 0:
        print(f"{name}: only root gets as far as apt; not tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        tree, shims = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "bin"
        tree.mkdir()
        shims.mkdir()
        copy_scripts(source, tree)
        if "build" in arguments[:1] or "bench" in arguments[:1]:
            torch = tree / ".deps" / "torch-2.11.0" / "torch"
            for file in ("lib/libtorch_cpu.so", "include/torch/csrc/api/include/torch/torch.h"):
                (torch / file).parent.mkdir(parents=True)
                (torch / file).touch()
        for program, text in programs.items():
            (shims / program).write_text(f"#!/bin/bash\n{text}\n")
            (shims / program).chmod(0o755)
        os.chmod(folder, 0o755)
        as_user = {"user": user, "extra_groups": []} if user and os.geteuid() == 0 else {}
        if as_user:
            for path in (tree, *tree.rglob("*")):
                os.chown(path, user, -1)
        kept = {key: value for key, value in os.environ.items() if key not in ("TORCH_ROOT", "LIBTORCH", "SKYTRAIN_JOBS", "CI")}
        done = subprocess.run(["./dev", *arguments], cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, **as_user,
                              env={**kept, "PATH": f"{shims}:{os.environ['PATH']}", **variables})
        if done.returncode != code:
            yield f"{name}: exit code {done.returncode}, expected {code}:\n{done.stdout}"
        for word in words:
            if word not in done.stdout:
                yield f"{name}: does not say {word!r}:\n{done.stdout}"
        if done.returncode != 0 and not any(line.startswith("dev: ") for line in done.stdout.splitlines()):
            yield f"{name}: no line that begins with 'dev: ':\n{done.stdout}"


def findings(source: pathlib.Path) -> Iterator[str]:
    for case in CASES:
        yield from run(case, source)


if __name__ == "__main__":
    check.report(findings(check.arguments().source))
