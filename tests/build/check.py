"""What the build checks share: their arguments, and how they report.

A check is a function that yields findings, each "place: what is wrong"; a self-test proves that it can find one.
"""
import argparse
import pathlib
import subprocess
import sys
from typing import Iterable


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    return parser.parse_args()


def report(findings: Iterable[str]) -> None:
    """Prints the findings and ends the program: 0 when there are none."""
    found = list(findings)
    for finding in found:
        print(finding)
    sys.exit(1 if found else 0)


def tracked_files(source: pathlib.Path) -> list[pathlib.Path]:
    """Files under version control, or about to be (not ignored); of a source archive: all but what a build makes."""
    if (source / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={source}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=source, check=True, capture_output=True).stdout
        names = [name for name in listed.decode().split("\0") if name]
        return [source / name for name in names if (source / name).is_file()]
    made = {"build", ".deps", "runs", "__pycache__"}
    return [path for path in source.rglob("*")
            if path.is_file() and not made.intersection(path.relative_to(source).parts)]
