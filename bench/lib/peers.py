"""The Python environment of the peers."""
import os
import pathlib
import subprocess
import sys

from lib.machine import ROOT


def python(further=None):
    """SKYTRAIN_PEERS_PYTHON, or .deps/peers/bin/python, which is made from bench/requirements.txt when it is absent.

    further: names a file in bench/ with more packages, which are installed once. One that can't be installed is named
    and does not end the benchmark, which has to do without it, and is tried again the next time."""
    named = os.environ.get("SKYTRAIN_PEERS_PYTHON")
    if named:
        return named
    environment = ROOT / ".deps/peers"
    program = environment / "bin/python"
    if not program.exists():
        print(f"making {environment} (PyTorch for Python: about 6 GB on disk)", file=sys.stderr, flush=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", environment], check=True)
        subprocess.run([*pip(program), "--requirement", ROOT / "bench/requirements.txt"], check=True)
    if further:
        install_further(program, ROOT / "bench" / further, environment / further)
    return str(program)


def pip(program):
    return [program, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]


def install_further(program, requirements, installed):
    """installed: a copy of the requirements, which says that all of them are there."""
    text = requirements.read_text()
    if installed.exists() and installed.read_text() == text:
        return
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    print(f"installing {', '.join(lines)}", file=sys.stderr, flush=True)
    # Together with the first list, so that none of them changes torch's version.
    first = ["--requirement", ROOT / "bench/requirements.txt"]
    done = {line: subprocess.run([*pip(program), *first, line], stdout=sys.stderr).returncode == 0 for line in lines}
    if all(done.values()):
        installed.write_text(text)
    for line in (line for line, good in done.items() if not good):
        print(f"{line} can't be installed: the benchmark does without it", file=sys.stderr, flush=True)


def libraries_of_wheel(program, package):
    """The folder of shared libraries that came with a package (PACKAGE.libs beside it); None: not installed."""
    found = subprocess.run([program, "-c", "import importlib.util, sys\nspec = importlib.util.find_spec(sys.argv[1])\n"
                            "print(spec.submodule_search_locations[0] if spec else '')", package],
                           capture_output=True, text=True, check=True).stdout.strip()
    folder = pathlib.Path(found + ".libs") if found else None
    return folder if folder and folder.is_dir() else None
