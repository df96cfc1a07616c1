import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness import Workplace, write_idx


@pytest.fixture
def place():
    """A fresh folder, readable for other users too (pytest's own tmp_path is not)."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="skytrain-e2e-"))
    folder.chmod(0o755)
    yield Workplace(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def trained_place(place):
    """With a small data set and the usual recipe: 2 epochs of 16 steps."""
    write_idx(place.folder / "mnist")
    place.write_recipe()
    return place


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """A library to preload, fault_shim.c."""
    library = tmp_path_factory.mktemp("shim") / "fault_shim.so"
    source = pathlib.Path(__file__).with_name("fault_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
    return library
