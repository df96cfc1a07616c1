#!/usr/bin/env python3
"""Makes the data sets of this folder with the programs whose formats they are: mosaicml-streaming 0.13, webdataset 1.0,
GNU tar and Python's tarfile. Each holds pictures of ../pictures; sample i has class i (7 - i in gnu.tar).

Run with the packages of tests/judges/formats_requirements.txt, here:  ./make_formats.py
"""
import io
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

import webdataset
from PIL import Image
from streaming import MDSWriter

FOLDER = pathlib.Path(__file__).parent
PICTURES = [FOLDER.parent / "pictures" / name for name in ("photo.jpg", "grey.jpg", "progressive.jpg", "cmyk.jpg")]


def mds(name, compression, hashes):
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    columns = {"id": "str", "image": "jpeg", "label": "int", "weight": "float32"}
    with MDSWriter(columns=columns, out=str(FOLDER / name), compression=compression, hashes=hashes,
                   size_limit=4000) as writer:
        for i, path in enumerate(PICTURES):
            writer.write({"id": f"sample {i}", "image": Image.open(path), "label": i, "weight": 0.5})


def wds():
    with webdataset.TarWriter(str(FOLDER / "webdataset.tar")) as writer:
        for i, path in enumerate(PICTURES):
            writer.write({"__key__": f"train/{i:04d}", "jpg": path.read_bytes(), "cls": i, "json": {"name": path.name}})


def gnu():
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for i, path in enumerate(PICTURES):
            base = f"{'n' * 120}-{i}"
            shutil.copy(path, f"{folder}/{base}.jpg")
            pathlib.Path(f"{folder}/{base}.cls").write_text(f"{7 - i}\n")
            names += [base + ".jpg", base + ".cls"]
        subprocess.run(["tar", "--format=gnu", "--mtime=@0", "--owner=0", "--group=0", "-C", folder, "-cf",
                        FOLDER / "gnu.tar", *names], check=True)


def pax():
    with tarfile.open(FOLDER / "pax.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for i, path in enumerate(PICTURES):
            for suffix, content in (("jpg", path.read_bytes()), ("cls", str(i).encode())):
                member = tarfile.TarInfo(f"ünï/{'p' * 120}{i}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    mds("mds_raw", None, ["sha1", "xxh64"])
    mds("mds_zstd", "zstd:3", ["xxh128"])
    wds()
    gnu()
    pax()
