"""Runs that the unit tests write on request: what a single good training run does not show (a resume, a crash, text that
wants to be markup)."""
import os
import pathlib
import subprocess

TESTS = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "test"


def write(program, test, variable, folder):
    """Lets TESTS/<program> write its fixtures into `folder`. False when it has not been built."""
    path = TESTS / program
    if not path.exists():
        print(f"{path} is not there: its fixtures are not judged")
        return False
    subprocess.run([path, f"--gtest_filter={test}.*", "--gtest_brief=1"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, variable: str(folder)})
    return True
