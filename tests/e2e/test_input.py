"""The input pipeline under a run: threads that make batches ahead change nothing but the time."""
import json
import os
import random
import signal
import struct
import zlib

import pytest

from harness import Workplace, assert_same_training, checkpoints, is_running, wait_until

TRANSFORMS = ("[{random_resized_crop: {scale: [0.2, 1]}}, {flip: {}}, "
              "{normalize: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}}]")


def write_png(path, width, height, rng):
    """Waves of a random direction and colour."""
    x_step, y_step, colour = rng.randrange(1, 9), rng.randrange(1, 9), [rng.randrange(256) for _ in range(3)]
    lines = b"".join(b"\0" + bytes((c + x * x_step + y * y_step) % 256 for x in range(width) for c in colour)
                     for y in range(height))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


@pytest.fixture
def pictures(place):
    """Arguments for a run on a folder of pictures of many sizes."""
    rng = random.Random(1)
    for name in ("cat", "dog"):
        (place.folder / "pictures" / name).mkdir(parents=True)
        for index in range(15):
            write_png(place.folder / f"pictures/{name}/{index:02}.png", rng.randrange(20, 90), rng.randrange(20, 90), rng)
    place.write_recipe(model="{name: convnet, classes: 2, width: 4}", batch=8, length="epochs: 4", devices=1,
                       checkpoint_every="3 steps")
    data = f"{{format: imagefolder, path: {place.folder}/pictures, size: 16, resize: 20}}"
    sets = [f"data.train={data}", f"data.eval={data}", f"data.transforms={TRANSFORMS}", "train.slot=3"]
    return [word for text in sets for word in ("--set", text)]


def reference_of(place, runs):
    reference = Workplace(place.folder)
    reference.runs = place.folder / runs
    return reference.run_directory()


def test_any_number_of_threads_makes_the_same_run(place, pictures):
    for workers in (0, 1, 3, "auto"):
        result = place.train("--runs", f"runs-{workers}", *pictures, "--set", f"data.workers={workers}")
        assert result.code == 0, result
        assert ("data" in result.summary) == (workers != 0), result.summary
        if workers in (1, 3):
            assert result.summary["data"]["workers"] == workers
        if workers != 0:
            assert_same_training(reference_of(place, f"runs-{workers}"), reference_of(place, "runs-0"))


def test_a_killed_run_goes_on_in_the_middle_of_an_epoch(place, pictures):
    reference = place.train("--runs", "reference", *pictures, "--set", "data.workers=2")
    assert reference.code == 0, reference
    for _ in range(2):
        with place.start_training(*pictures, "--set", "data.workers=2") as program:
            worker = program.wait_for_worker()
            before = newest_step(place)
            wait_until(lambda: newest_step(place) > before or program.process.poll() is not None, "another checkpoint")
            if is_running(worker):
                os.kill(worker, signal.SIGKILL)
            program.finish()
    result = place.train(*pictures, "--set", "data.workers=2")
    assert result.code == 0, result
    assert_same_training(place.run_directory(), reference_of(place, "reference"))


def test_a_damaged_picture_is_named_by_the_run_that_meets_it(place, pictures):
    victim = place.folder / "pictures/dog/07.png"
    victim.write_bytes(victim.read_bytes()[:-30])
    result = place.train(*pictures, "--set", "data.workers=2")
    assert result.code == 4 and "dog/07.png" in result.err, result


# The other replica waited for ever for a batch that only the one that failed would have made room for.
def test_a_damaged_picture_ends_a_run_of_two_devices(place, pictures):
    for name in ("cat", "dog"):
        for index in range(15):
            if index % 4 == 1:
                victim = place.folder / f"pictures/{name}/{index:02}.png"
                victim.write_bytes(victim.read_bytes()[:-30])
    for workers in (1, 2):
        result = place.train(*pictures, "--set", "data.eval=null", "--set", "devices=2", "--set", "train.batch=30", "--set",
                             "train.slot=1", "--set", f"data.workers={workers}", "--runs", f"runs-{workers}")
        assert result.code == 4 and ".png" in result.err, result


def test_damaged_pictures_are_left_out_named_and_counted(place, pictures):
    names = ["cat/03.png", "dog/07.png"]
    for name in names:
        victim = place.folder / "pictures" / name
        victim.write_bytes(victim.read_bytes()[:-30])
    some = (*pictures, "--set", "data.workers=2", "--set", "data.skip_bad_samples=2")
    reference = place.train("--runs", "reference", *some)
    assert reference.code == 0, reference
    for part in ("train", "eval"):
        bad = reference.summary["bad_samples"][part]
        assert [one["name"].split("pictures/")[1] for one in bad] == names and all(one["problem"] for one in bad), bad
    assert reference.summary["eval"]["samples"] == 28
    for name in names:
        assert f"{name}: " in reference.err and "the sample is left out" in reference.err, reference

    # A run that is killed and goes on knows them, and one too many ends it.
    with place.start_training(*some) as program:
        worker = program.wait_for_worker()
        wait_until(lambda: newest_step(place) > 3 or program.process.poll() is not None, "a checkpoint")
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)
        program.finish()
    result = place.train(*some)
    assert result.code == 0, result
    assert result.summary["bad_samples"] == reference.summary["bad_samples"]
    assert_same_training(place.run_directory(), reference_of(place, "reference"))
    result = place.train("--runs", "fewer", *pictures, "--set", "data.skip_bad_samples=1")
    assert result.code == 4 and "one more than the 1 that data.skip_bad_samples allows" in result.err, result


SHAPES = ("--set", "data.transforms=[{flip: {}}]", "--set", "model={name: resnet18, classes: 2, stem: cifar}",
          "--set", "data.buckets=[16x16, 12x20, 20x12]", "--set", "train.epochs=2",
          "--set", "data.progressive_resizing={initial_scale: 0.5, delay_fraction: 0.2}")


def test_batches_of_like_shapes_that_grow_go_on_after_a_kill(place, pictures):
    reference = place.train("--runs", "reference", *pictures, *SHAPES, "--set", "data.workers=0")
    assert reference.code == 0, reference
    assert reference.summary["eval"]["samples"] == 30 and reference.summary["samples"] == 60
    with place.start_training(*pictures, *SHAPES, "--set", "data.workers=2") as program:
        worker = program.wait_for_worker()
        wait_until(lambda: newest_step(place) > 0 or program.process.poll() is not None, "a checkpoint")
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)
        program.finish()
    result = place.train(*pictures, *SHAPES, "--set", "data.workers=2")
    assert result.code == 0, result
    assert_same_training(place.run_directory(), reference_of(place, "reference"))


def test_shapes_that_do_not_go_are_refused_before_the_run(place, pictures):
    def refused(*words, code=3):
        result = place.train(*pictures, *SHAPES, *words)
        assert result.code == code, result
        assert place.run_directories() == []
        return result.err

    assert "data.buckets[1]: " in refused("--set", "data.buckets=[16x16, 16]")
    assert "data.buckets: does not go with random_resized_crop" in refused("--set", "data.transforms=[random_resized_crop: {}]")
    error = refused("--set", "model={name: mlp, classes: 2}")
    assert "data.buckets: model mlp does not take pictures of " in error and "pools its features" in error, error
    assert "data.progressive_resizing" in refused("--set", "data.progressive_resizing={delay_fraction: 0.9}")
    error = refused("--set", "data.train={format: synthetic, samples: 40, channels: 3, height: 16, width: 16}")
    assert "data.buckets: needs files of pictures" in error, error


def test_random_crops_need_pictures(place, pictures):
    result = place.train(*pictures, "--set", "data.train={format: synthetic, samples: 40, channels: 3, height: 16, width: 16}")
    assert result.code == 3 and "data.transforms[0].random_resized_crop" in result.err, result
    assert place.run_directories() == []  # a run that never began leaves nothing


def newest_step(place):
    return max([0, *(step for run in place.run_directories() for step in checkpoints(run))])


def test_bench_says_how_fast_and_where_the_time_goes(place, pictures):
    result = place.run("data", "bench", "pictures", "--size", "32", "--batch", "8", "--seconds", "0.2", "--threads", "2", "--json")
    assert result.code == 0, result
    figures = result.summary
    assert figures["images"] >= 8 and figures["images_per_second"] > 0 and figures["images_per_core_second"] > 0
    assert figures["peak_rss_bytes"] > 1 << 20 and abs(sum(figures["stages"].values()) - 1) < 1e-9
    assert place.run("data", "bench", "missing").code == 4


def test_lines_of_json_name_the_pictures(place, pictures):
    """The same pictures in the same order, by a list: the same run but for the identity of the data."""
    files = sorted((place.folder / "pictures").glob("*/*.png"))
    lines = [json.dumps({"caption": "no key of ours", "file_name": str(file.relative_to(place.folder)),
                         "label": file.parent.name}) for file in files]
    (place.folder / "metadata.jsonl").write_text("\n".join(lines) + "\n")
    listed = [word.replace(f"format: imagefolder, path: {place.folder}/pictures",
                           f"format: jsonl, path: {place.folder}/metadata.jsonl, image: file_name, target: label")
              for word in pictures]
    result = place.train("--runs", "listed", *listed, "--set", "data.workers=2")
    assert result.code == 0, result
    folder = place.train("--runs", "folder", *pictures, "--set", "data.workers=2")
    assert folder.code == 0, folder
    assert_same_training(reference_of(place, "listed"), reference_of(place, "folder"))
    flags = ["--image", "file_name", "--target", "label"]
    assert place.run("data", "inspect", "metadata.jsonl", *flags, "--json").summary["splits"]["all"]["kinds"] == \
        {"jpeg": 0, "png": 30}
    packed = place.run("data", "pack", "metadata.jsonl", *flags, "-o", "packed", "--json")
    assert packed.code == 0 and packed.summary["samples"] == 30, packed
    bench = place.run("data", "bench", "metadata.jsonl", *flags, "--size", "32", "--batch", "8", "--seconds", "0.1", "--json")
    assert bench.code == 0, bench
    (place.folder / "metadata.jsonl").write_text("\n".join(lines[:3]) + "\n" + lines[3].replace("pictures/", "../"))
    result = place.train("--runs", "refused", *listed)
    assert result.code == 4 and "metadata.jsonl:4:" in result.err and "file_name" in result.err, result


def test_lines_of_json_hold_rows(place):
    rng = random.Random(2)
    rows = [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(256)]
    for name, part in (("train", rows[:192]), ("eval", rows[192:])):
        (place.folder / f"{name}.jsonl").write_text("".join(
            json.dumps({"x": row[:2], "z": row[2], "y": "above" if sum(row) > 0 else "below"}) + "\n" for row in part))
    place.write_recipe(model="{name: mlp, classes: 2, hidden: [16]}", batch=16, length="epochs: 20", devices=1,
                       optimizer="{name: adam, lr: 0.01}")
    sets = [word for name in ("train", "eval")
            for word in ("--set", f"data.{name}={{format: jsonl, path: {place.folder}/{name}.jsonl, target: y}}")]
    result = place.train(*sets, "--set", "data.transforms=[]")
    assert result.code == 0, result
    assert result.summary["eval"]["top1"] > 0.9, result
    (place.folder / "eval.jsonl").write_text('{"x": [1, null], "z": 1, "y": "above"}\n')
    result = place.train(*sets, "--set", "data.transforms=[]", "--set", "seed=8")
    assert result.code == 4 and "eval.jsonl:1:7" in result.err and "null" in result.err, result
