#!/usr/bin/env python3
"""mosaicml-streaming and webdataset read the shards that we pack, and we read theirs: byte for byte.

usage: judge_formats.py [RUN_DIR]     RUN_DIR is not looked at

Theirs are read by `skytrain data pack`, whose archives Python's tarfile then opens. The packages of
formats_requirements.txt come into .deps/judge-formats, beside the PyTorch of .deps/peers, which streaming imports.
"""
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKYTRAIN = ROOT / "build" / "release" / "bin" / "skytrain"


def python():
    """SKYTRAIN_FORMATS_PYTHON, or .deps/judge-formats, made anew when its list of packages changes."""
    named = os.environ.get("SKYTRAIN_FORMATS_PYTHON")
    if named:
        return named
    sys.path.insert(0, str(ROOT / "bench"))
    from lib import peers
    peer = peers.python()
    environment = ROOT / ".deps" / "judge-formats"
    program, wanted = environment / "bin" / "python", pathlib.Path(__file__).parent / "formats_requirements.txt"
    stamp = environment / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([peer, "-m", "venv", environment], check=True)
        # Without dependencies: those of streaming are clients of every cloud, which no one here talks to.
        subprocess.run([program, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off", "--no-deps",
                        "--requirement", wanted], check=True)
        where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        own, others = (subprocess.run([p, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
                       for p in (program, peer))
        pathlib.Path(own, "peers.pth").write_text(others + "\n")
        shutil.copy(wanted, stamp)
    return str(program)


try:
    import webdataset
    from PIL import Image
    from streaming import MDSWriter, StreamingDataset
except ImportError:
    if os.environ.get("SKYTRAIN_JUDGE_AGAIN"):
        raise
    again = python()
    os.execve(again, [again, *sys.argv], {**os.environ, "SKYTRAIN_JUDGE_AGAIN": "1"})

problems = []


def problem(text):
    print(text)
    problems.append(text)


def skytrain(*arguments, code=0):
    done = subprocess.run([SKYTRAIN, "data", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != code:
        problem(f"data {' '.join(map(str, arguments))}: exit code {done.returncode}: {done.stderr.strip()}")
        return False
    return True


def random_picture(rng, kind=None):
    size = rng.randrange(1, 60), rng.randrange(1, 60)
    mode = rng.choice(["RGB", "L"])
    image = Image.frombytes(mode, size, rng.randbytes(size[0] * size[1] * len(mode)))
    out = io.BytesIO()
    image.save(out, kind or rng.choice(["JPEG", "PNG"]))
    return out.getvalue()


def difference(name, expected, found):
    """Lists of (picture, class)."""
    if len(expected) != len(found):
        problem(f"{name}: {len(found)} samples, expected {len(expected)}")
        return
    for i, (one, other) in enumerate(zip(expected, found)):
        if one[1] != other[1]:
            problem(f"{name}: sample {i} has class {other[1]}, expected {one[1]}")
        if one[0] != other[0]:
            problem(f"{name}: picture {i} differs ({len(other[0])} bytes, expected {len(one[0])})")


def by_webdataset(folder):
    shards = sorted(str(path) for path in folder.glob("*.tar"))
    samples = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
    return [(sample.get("jpg", sample.get("png")), int(sample["cls"])) for sample in samples]


def by_streaming(folder, scratch):
    """As bytes: their reader decodes by the encoding that the index names."""
    copy = scratch / "as-bytes"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    index = json.loads((copy / "index.json").read_text())
    for shard in index["shards"]:
        shard["column_encodings"] = ["bytes" if e in ("jpeg", "png") else e for e in shard["column_encodings"]]
    (copy / "index.json").write_text(json.dumps(index))
    data = StreamingDataset(local=str(copy), batch_size=1, shuffle=False)
    return [(data[i]["image"], int(data[i]["label"])) for i in range(data.num_samples)]


def judge_ours(rng, scratch):
    source, expected = scratch / "source", []
    for label, name in enumerate(["ant", "bee", "çat"]):
        (source / name).mkdir(parents=True)
        for i in range(rng.randrange(1, 40)):
            picture = random_picture(rng)
            (source / name / f"{i:03d}.jpg").write_bytes(picture)
            expected.append((picture, label))
    for name, flags in (("mds", []), ("zstd", ["--compression", "zstd:7"])):
        if not skytrain("pack", source, "-o", scratch / name, "--format", "mds", "--shard-size", "64KiB", *flags):
            continue
        difference(f"ours as {name}, by streaming", expected, by_streaming(scratch / name, scratch))
        data = StreamingDataset(local=str(shutil.copytree(scratch / name, scratch / (name + "-decoded"))), batch_size=1,
                                shuffle=False)
        for i in range(len(expected)):  # that it finds pictures there
            if data[i]["image"].size != Image.open(io.BytesIO(expected[i][0])).size:
                problem(f"ours as {name}: streaming decodes another picture {i}")
        for shard in json.loads((scratch / name / "index.json").read_text())["shards"]:
            for part in ("raw_data", "zip_data"):
                path = shard[part] and scratch / name / shard[part]["basename"]
                if path and path.exists():
                    import xxhash
                    if xxhash.xxh64(path.read_bytes()).hexdigest() != shard[part]["hashes"]["xxh64"]:
                        problem(f"{path.name}: its xxh64 is another one")
    if skytrain("pack", source, "-o", scratch / "wds", "--format", "webdataset", "--shard-size", "64KiB"):
        difference("ours as webdataset", expected, by_webdataset(scratch / "wds"))
    return 3


def by_us(path, scratch):
    out = scratch / "read-by-us"
    shutil.rmtree(out, ignore_errors=True)
    if not skytrain("verify", path) or not skytrain("pack", path, "-o", out, "--format", "webdataset"):
        return []
    found = []
    for shard in sorted(out.glob("*.tar")):
        with tarfile.open(shard) as archive:
            content = [archive.extractfile(member).read() for member in archive]
        found += [(content[i], int(content[i + 1])) for i in range(0, len(content), 2)]
    return found


def judge_streamings(rng, scratch, number):
    folder, expected = scratch / f"streaming-{number}", []
    image, label = rng.choice(["image", "jpg", "x", "zzz"]), rng.choice(["label", "cls", "y", "aaa"])
    integer = rng.choice(["int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
    columns = {image: rng.choice(["jpeg", "bytes"]), label: integer}
    for name, encoding in (("text", "str"), ("weight", "float32"), ("boxes", "ndarray:int32:2,2"), ("meta", "json")):
        if rng.random() < 0.4:
            columns[name] = encoding
    import numpy
    values = {"text": "ü" * rng.randrange(30), "weight": 1.5, "boxes": numpy.ones((2, 2), numpy.int32), "meta": {"a": 1}}
    compression = rng.choice([None, "zstd", "zstd:9"])
    hashes = sorted(rng.sample(["xxh32", "xxh64", "xxh3_64", "xxh128", "sha1"], rng.randrange(4)))
    with MDSWriter(columns=columns, out=str(folder), compression=compression, hashes=hashes,
                   size_limit=rng.choice([2000, 20000, None])) as writer:
        for i in range(rng.randrange(1, 40)):
            picture = random_picture(rng, "JPEG")
            path = scratch / f"{number}-{i}.jpg"
            path.write_bytes(picture)  # streaming keeps the bytes of files that are JPEG
            expected.append((picture, rng.randrange(100)))
            sample = {image: Image.open(path) if columns[image] == "jpeg" else picture, label: expected[-1][1]}
            writer.write({**sample, **{name: values[name] for name in columns if name in values}})
    difference(f"{folder.name} {columns} {compression}", expected, by_us(folder, scratch))


def judge_webdatasets(rng, scratch, number):
    folder, expected = scratch / f"webdataset-{number}", []
    folder.mkdir()
    for shard in range(rng.randrange(1, 4)):
        with webdataset.TarWriter(str(folder / f"x-{shard:03d}.tar")) as writer:
            for i in range(rng.randrange(1, 20)):
                kind = rng.choice(["jpg", "png", "jpeg", "PNG"])
                picture = random_picture(rng)
                key = rng.choice(["", "a.b/", "ü/", "n" * rng.randrange(200) + "/"]) + f"{i:04d}"
                sample = {"__key__": key, kind: picture, "cls": rng.randrange(100)}
                if rng.random() < 0.5:
                    sample["seg.png"] = b"not looked at"
                expected.append((picture, sample["cls"]))
                writer.write({name: sample[name]
                              for name in rng.sample(list(sample), len(sample))})
    difference(folder.name, expected, by_us(folder, scratch))


def main():
    if not SKYTRAIN.exists():
        sys.exit(f"{SKYTRAIN} is not there: ./dev build")
    rng = random.Random(int(os.environ.get("SKYTRAIN_SEED", "20")))
    with tempfile.TemporaryDirectory(prefix="skytrain-judge-") as name:
        scratch = pathlib.Path(name)
        sets = judge_ours(rng, scratch)
        for number in range(15):
            judge_streamings(rng, scratch, number)
            judge_webdatasets(rng, scratch, number)
            sets += 2
    print(f"{'FAILED' if problems else 'ok'}: {sets} data sets of mosaicml-streaming, webdataset and ours")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
