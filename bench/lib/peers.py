"""The Python environment of the peers."""
import os
import subprocess
import sys

from lib.machine import ROOT


def python():
    """SKYTRAIN_PEERS_PYTHON, or .deps/peers/bin/python, which is made from bench/requirements.txt when it is absent."""
    named = os.environ.get("SKYTRAIN_PEERS_PYTHON")
    if named:
        return named
    environment = ROOT / ".deps/peers"
    program = environment / "bin/python"
    if not program.exists():
        print(f"making {environment} (PyTorch for Python: about 6 GB on disk)", file=sys.stderr, flush=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", environment], check=True)
        subprocess.run([program, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off",
                        "--requirement", ROOT / "bench/requirements.txt"], check=True)
    return str(program)
