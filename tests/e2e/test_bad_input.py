"""Broken recipes, data sets, folders and command lines: one clear line that names the place, and the right exit code.

Each case breaks one thing in a place where `skytrain train recipe.yaml` works.
"""
import gzip
import os
import shutil
import subprocess

import pytest

from harness import Result, binary, checkpoints, idx_bytes, metrics, wait_until, write_idx

USAGE, RECIPE, DATA, ENVIRONMENT = 2, 3, 4, 5
KINDS = {USAGE: "usage", RECIPE: "recipe", DATA: "data", ENVIRONMENT: "environment"}
UGLY = ("terminate called", "what():", "Traceback", "Exception raised from", "std::", "nlohmann", "yaml-cpp", "c10::",
        "Segmentation", "Aborted", "core dumped", "AddressSanitizer", "runtime error")

IMAGES, LABELS = "mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"


def check(result, code, *words):
    assert result.code == code, result
    # What the run had to say before (its folder, its model, its progress) does not count.
    lines = result.err.strip("\n").splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("skytrain: ")), None)
    assert begin is not None and len(lines) - begin <= 4, f"lines {begin} of {len(lines)}\n{result}"
    assert not [word for word in UGLY if word in result.err], result
    for word in words:
        assert word in result.err, f"{word!r} is not named\n{result}"
    last = result.summary
    assert last["error"]["kind"] == KINDS[code], result
    assert last["error"]["what"] and last.get("exit_code", code) == code


def edit(place, old, new):
    text = (place.folder / "recipe.yaml").read_text()
    assert old in text
    (place.folder / "recipe.yaml").write_text(text.replace(old, new))


# ---------------------------------------------------------------------------------------------------------------------
# recipes: (name, old text, new text, words that the message must hold)

RECIPES = [
    ("unknown_key", "  batch: 16", "  bacth: 16", ["recipe.yaml:12:", "bacth", 'did you mean "batch"']),
    ("unknown_section", "checkpoint: {", "chekpoint: {", ["chekpoint", 'did you mean "checkpoint"']),
    ("unknown_model", "name: simplecnn", "name: simplecn", ["recipe.yaml:4:", "model.name", "simplecnn"]),
    ("unknown_optimizer", "{name: sgd", "{name: sdg", ["train.optimizer.name", 'did you mean "sgd"']),
    ("unknown_schedule", "{name: cosine", "{name: cosin", ["train.schedule.name", 'did you mean "cosine"']),
    ("unknown_transform", "- normalize:", "- normalise:", ["data.transforms", 'did you mean "normalize"']),
    ("unknown_precision", "precision: fp32", "precision: fp23", ["train.precision", "fp32"]),
    ("unknown_unit", "every: [1 epoch]", "every: [1 epok]", ["recipe.yaml", "checkpoint.every", "epok"]),
    ("wrong_unit", "every: 1 epoch}", "every: 10 MiB}", ["eval.every", "MiB", "epochs"]),
    ("tab", "  batch: 16", "\tbatch: 16", ["recipe.yaml:12:", "tab"]),
    ("huge_number", "batch: 16", "batch: 99999999999999999999999", ["recipe.yaml:12:", "train.batch"]),
    ("huge_real", "lr: 0.01", "lr: 1e999", ["recipe.yaml:13:", "train.optimizer.lr"]),
    ("negative_rate", "lr: 0.01", "lr: -0.01", ["recipe.yaml:13:", "train.optimizer.lr"]),
    ("word_for_a_number", "batch: 16", "batch: many", ["recipe.yaml:12:", "train.batch", "many"]),
    ("batch_of_zero", "batch: 16", "batch: 0", ["recipe.yaml:12:", "train.batch"]),
    ("no_epochs", "epochs: 2", "epochs: 0", ["recipe.yaml:11:", "train.epochs"]),
    ("missing_batch", "  batch: 16\n", "", ["train.batch"]),
    ("missing_rate", "lr: 0.01, ", "", ["train.optimizer.lr"]),
    ("missing_model", "model: {name: simplecnn, classes: 10}\n", "", ["model"]),
    ("duplicate_key", "  batch: 16", "  batch: 16\n  batch: 32", ["recipe.yaml:13:", "batch"]),
    ("version_of_the_future", "version: 1", "version: 2", ["recipe.yaml:1:", "version", "2", "1"]),
    ("list_for_a_map", "model: {name: simplecnn, classes: 10}", "model: [simplecnn]", ["recipe.yaml:4:", "model"]),
    ("unclosed_brace", "{name: simplecnn, classes: 10}", "{name: simplecnn, classes: 10", ["recipe.yaml:"]),
    ("nan_in_std", "std: [0.25]", "std: [.nan]", ["recipe.yaml:9:", "std"]),
    ("std_of_zero", "std: [0.25]", "std: [0]", ["recipe.yaml:9:", "std"]),
    ("unequal_mean_and_std", "std: [0.25]", "std: [0.25, 0.25]", ["data.transforms", "std"]),
    ("path_in_a_name", "name: case", "name: ../case", ["recipe.yaml:2:", "name"]),
    ("empty_name", "name: case", 'name: ""', ["recipe.yaml:2:", "name"]),
    ("nesterov_without_momentum", "momentum: 0.9", "nesterov: true", ["nesterov"]),
    ("slot_over_batch", "  batch: 16", "  batch: 16\n  slot: 17", ["train.slot"]),
    ("anchor_bomb", "seed: 7", "seed: &a [*a]", ["recipe.yaml:3:"]),
]


@pytest.mark.parametrize("old, new, words", [case[1:] for case in RECIPES], ids=[case[0] for case in RECIPES])
def test_recipe(trained_place, old, new, words):
    edit(trained_place, old, new)
    check(trained_place.train(), RECIPE, *words)
    assert not trained_place.runs.exists(), "nothing was started"


RECIPE_FILES = {
    "empty": (b"", ["recipe.yaml"]),
    "only_a_comment": (b"# nothing yet\n", ["recipe.yaml"]),
    "a_scalar": (b"hello\n", ["recipe.yaml:1:"]),
    "not_utf8": (b"version: 1\nname: caf\xe9\n", ["recipe.yaml:2:", "UTF-8"]),
    "utf16": ("version: 1\nname: case\n".encode("utf-16"), ["recipe.yaml"]),
    "binary": (bytes(range(256)) * 20, ["recipe.yaml"]),
    "json_of_something_else": (b'{"steps": [1, 2, 3]}', ["recipe.yaml:1:"]),
    "two_documents": (b"version: 1\n---\nversion: 1\n", ["recipe.yaml"]),
}


@pytest.mark.parametrize("content, words", RECIPE_FILES.values(), ids=RECIPE_FILES.keys())
def test_recipe_file(trained_place, content, words):
    (trained_place.folder / "recipe.yaml").write_bytes(content)
    check(trained_place.train(), RECIPE, *words)


def test_recipe_that_is_not_there(trained_place):
    result = trained_place.train(recipe="recepi.yaml")
    assert result.code in (USAGE, RECIPE, ENVIRONMENT), result
    check(result, result.code, "recepi.yaml")


def test_recipe_that_is_a_folder(trained_place):
    result = trained_place.train(recipe="mnist")
    assert result.code in (USAGE, RECIPE, ENVIRONMENT), result
    check(result, result.code, "mnist", "folder")


SETS = {
    "no_equals_sign": ("train.batch", ["--set train.batch"]),
    "no_key": ("=3", ["--set"]),
    "no_value": ("train.batch=", ["--set train.batch="]),
    "unknown": ("train.bath=8", ["--set train.bath=8", 'did you mean "batch"']),
    "wrong_type": ("train.batch=soon", ["--set train.batch=soon"]),
    "broken_yaml": ("train.optimizer={name: sgd", ["--set train.optimizer={name: sgd"]),
    "into_a_scalar": ("train.batch.size=8", ["--set train.batch.size=8"]),
    "beyond_a_list": ("data.transforms[7].normalize.mean=1", ["--set data.transforms[7]"]),
}


@pytest.mark.parametrize("value, words", SETS.values(), ids=SETS.keys())
def test_set(trained_place, value, words):
    check(trained_place.train("--set", value), RECIPE, *words)


ARGUMENTS = {
    "unknown_verb": (["trian", "recipe.yaml", "--json"], ["trian", "train"]),
    "unknown_flag": (["train", "recipe.yaml", "--json", "--log-evry", "1"], ["--log-evry", "--log-every"]),
    "no_recipe": (["train", "--json"], ["RECIPE"]),
    "two_recipes": (["train", "recipe.yaml", "other.yaml", "--json"], ["other.yaml"]),
    "log_every_word": (["train", "recipe.yaml", "--json", "--log-every", "often"], ["--log-every", "often"]),
    "log_every_zero": (["train", "recipe.yaml", "--json", "--log-every", "0"], ["--log-every", "0"]),
    "log_every_negative": (["train", "recipe.yaml", "--json", "--log-every", "-5"], ["--log-every"]),
    "flag_without_value": (["train", "recipe.yaml", "--json", "--runs"], ["--runs"]),
    "resume_what_is_no_run": (["train", "recipe.yaml", "--json", "--resume", "mnist"], ["mnist"]),
    "resume_nowhere": (["train", "recipe.yaml", "--json", "--resume", "runs/case/20200101T000000Z"], ["20200101T000000Z"]),
}


@pytest.mark.parametrize("arguments, words", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_command_line(trained_place, arguments, words):
    check(trained_place.run(*arguments), USAGE, *words)


def test_no_verb_at_all(trained_place):
    result = trained_place.run()
    assert result.code == USAGE and "train" in result.err + result.out, result


# ---------------------------------------------------------------------------------------------------------------------
# data

def truncate(path, size):
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)


def plain(path):
    """The content of the .gz, which is replaced by a plain file in its place."""
    content = gzip.decompress(path.read_bytes())
    path.unlink()
    return bytearray(content), path.with_suffix("")


@pytest.mark.parametrize("size", [1, 2, 9, 10, 11, 40, 1000, -9000, -9, -8, -4, -1])
def test_truncated_gz(trained_place, size):
    truncate(trained_place.folder / IMAGES, size)
    check(trained_place.train(), DATA, "train-images-idx3-ubyte.gz")


@pytest.mark.parametrize("size", [0, 3, 4, 8, 15, 16, 17, 5000, -1])
def test_truncated_plain_file(trained_place, size):
    content, path = plain(trained_place.folder / IMAGES)
    path.write_bytes(content)
    truncate(path, size)
    check(trained_place.train(), DATA, "train-images-idx3-ubyte")


def with_bytes(offset, value):
    def change(place):
        content, path = plain(place.folder / IMAGES)
        content[offset:offset + len(value)] = value
        path.write_bytes(content)
    return change


def gz_bit_flip(place):
    path = place.folder / IMAGES
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def gz_trailing_garbage(place):
    with open(place.folder / IMAGES, "ab") as file:
        file.write(b"garbage")


def label_out_of_range(place):
    content = bytearray(gzip.decompress((place.folder / LABELS).read_bytes()))
    content[8 + 77] = 200
    (place.folder / LABELS).write_bytes(gzip.compress(content))


def fewer_labels(place):
    (place.folder / LABELS).write_bytes(gzip.compress(idx_bytes(0x801, (255,), bytes(255))))


def no_samples(place):
    (place.folder / IMAGES).write_bytes(gzip.compress(idx_bytes(0x803, (0, 12, 12), b"")))
    (place.folder / LABELS).write_bytes(gzip.compress(idx_bytes(0x801, (0,), b"")))


def pictures_without_pixels(place):
    (place.folder / IMAGES).write_bytes(gzip.compress(idx_bytes(0x803, (256, 0, 12), b"")))


def swapped(place):
    images, labels = place.folder / IMAGES, place.folder / LABELS
    content = images.read_bytes()
    images.write_bytes(labels.read_bytes())
    labels.write_bytes(content)


def replaced(name, content):
    return lambda place: (place.folder / name).write_bytes(content)


def as_folder(name):
    def change(place):
        (place.folder / name).unlink()
        (place.folder / name).mkdir()
    return change


def remove(name):
    return lambda place: shutil.rmtree(place.folder / name) if (place.folder / name).is_dir() else (
        place.folder / name).unlink()


def other_size_of_test_pictures(place):
    write_idx(place.folder / "other", side=14)
    shutil.copy(place.folder / "other/t10k-images-idx3-ubyte.gz", place.folder / "mnist")


HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n"

# name: (what to break, words)
DATA_SETS = {
    "wrong_magic": (with_bytes(0, b"\0\0\x08\x07"), ["train-images-idx3-ubyte", "magic"]),
    "wrong_type_of_element": (with_bytes(2, b"\x0d"), ["train-images-idx3-ubyte"]),
    "count_beyond_the_file": (with_bytes(4, b"\x7f\xff\xff\xff"), ["train-images-idx3-ubyte"]),
    "sizes_whose_product_overflows": (with_bytes(4, b"\xff" * 12), ["train-images-idx3-ubyte"]),
    "bit_flip_in_gz": (gz_bit_flip, ["train-images-idx3-ubyte.gz"]),
    "garbage_after_gz": (gz_trailing_garbage, ["train-images-idx3-ubyte.gz"]),
    "label_out_of_range": (label_out_of_range, ["train-labels-idx1-ubyte.gz", "77", "200"]),
    "fewer_labels_than_pictures": (fewer_labels, ["train-labels-idx1-ubyte.gz", "255", "256"]),
    "no_samples": (no_samples, ["mnist/train-", "-ubyte.gz", "0 samples"]),
    "pictures_without_pixels": (pictures_without_pixels, ["train-images-idx3-ubyte.gz"]),
    "labels_for_images": (swapped, ["mnist/train-", "-ubyte.gz", "swapped"]),
    "html_for_gz": (replaced(IMAGES, HTML), ["train-images-idx3-ubyte.gz", "HTML"]),
    "html_in_gz": (replaced(IMAGES, gzip.compress(HTML)), ["train-images-idx3-ubyte.gz"]),
    "zip_for_gz": (replaced(IMAGES, b"PK\x03\x04" + bytes(100)), ["train-images-idx3-ubyte.gz"]),
    "zero_bytes": (replaced(IMAGES, b""), ["train-images-idx3-ubyte.gz", "empty"]),
    "zero_bytes_of_labels": (replaced(LABELS, b""), ["train-labels-idx1-ubyte.gz", "empty"]),
    "git_lfs_pointer": (replaced(IMAGES, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
                        ["train-images-idx3-ubyte.gz"]),
    "folder_for_a_file": (as_folder(IMAGES), ["train-images-idx3-ubyte"]),
    "missing_images": (remove(IMAGES), ["train-images-idx3-ubyte"]),
    "missing_labels": (remove(LABELS), ["train-labels-idx1-ubyte"]),
    "missing_folder": (remove("mnist"), ["mnist"]),
    "missing_test_images": (remove("mnist/t10k-images-idx3-ubyte.gz"), ["t10k-images-idx3-ubyte"]),
    "test_pictures_of_another_size": (other_size_of_test_pictures, ["14x14", "12x12"]),
    "html_for_test_images": (replaced("mnist/t10k-images-idx3-ubyte.gz", HTML), ["t10k-images-idx3-ubyte.gz"]),
}


@pytest.mark.parametrize("change, words", DATA_SETS.values(), ids=DATA_SETS.keys())
def test_data(trained_place, change, words):
    change(trained_place)
    check(trained_place.train(), DATA, *words)


# The pictures for the evaluation are wanted only after the first epoch, which may be a day away.
@pytest.mark.parametrize("name", ["missing_test_images", "html_for_test_images", "test_pictures_of_another_size"])
def test_bad_evaluation_data_is_found_at_the_start(trained_place, name):
    change, words = DATA_SETS[name]
    change(trained_place)
    edit(trained_place, "epochs: 2", "steps: 2000")
    edit(trained_place, "every: 1 epoch}", "every: 2000 steps}")
    result = trained_place.train()
    check(result, DATA, *words)
    assert result.summary.get("steps", 0) < 1000, result


def test_more_labels_than_classes(trained_place):
    edit(trained_place, "classes: 10", "classes: 4")
    result = trained_place.train()
    check(result, DATA, "train-labels-idx1-ubyte.gz", "classes")


def test_three_means_for_grey_pictures(trained_place):
    edit(trained_place, "{mean: [0.5], std: [0.25]}", "{mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}")
    check(trained_place.train(), RECIPE, "normalize", "3", "1")


def test_pictures_too_small_for_the_model(place):
    write_idx(place.folder / "mnist", side=2)
    place.write_recipe()
    result = place.train()
    assert result.code in (RECIPE, DATA), result
    check(result, result.code, "2 x 2")


def test_a_batch_larger_than_the_set_is_one_short_step(trained_place):
    edit(trained_place, "batch: 16", "batch: 1000")
    result = trained_place.train()
    assert result.code == 0 and result.summary["steps"] == 2 and result.summary["samples"] == 512, result


# ---------------------------------------------------------------------------------------------------------------------
# the machine

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone may act as another user, and root may read all")


def as_nobody(place, *arguments):
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary(), *map(str, arguments)]
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, timeout=60)
    return Result(done.returncode, done.stdout, done.stderr)


@needs_root
def test_unreadable_recipe(trained_place):
    (trained_place.folder / "recipe.yaml").chmod(0)
    check(as_nobody(trained_place, "train", "recipe.yaml", "--json"), ENVIRONMENT, "recipe.yaml", "ermission denied")


@needs_root
def test_unreadable_data(trained_place):
    (trained_place.folder / IMAGES).chmod(0)
    (trained_place.folder / "runs").mkdir()
    (trained_place.folder / "runs").chmod(0o777)
    check(as_nobody(trained_place, "train", "recipe.yaml", "--json"), ENVIRONMENT, "train-images-idx3-ubyte.gz",
          "ermission denied")


@needs_root
def test_runs_folder_of_somebody_else(trained_place):
    (trained_place.folder / "runs").mkdir(mode=0o755)
    check(as_nobody(trained_place, "train", "recipe.yaml", "--json"), ENVIRONMENT, "runs", "ermission denied")


def test_runs_folder_that_is_a_file(trained_place):
    trained_place.runs.write_text("")
    check(trained_place.train(), ENVIRONMENT, "runs", "directory")


def test_runs_folder_below_a_file(trained_place):
    check(trained_place.train("--runs", "recipe.yaml/runs"), ENVIRONMENT, "recipe.yaml")


class Mounted:
    """A tmpfs of `size` KiB on `folder`. Needs root, as CI has it."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size

    def __enter__(self):
        self.folder.mkdir(exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.size}k", "skytrain-test", self.folder],
                              capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not permitted: {done.stderr.strip()}")
        return self

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)


def test_read_only_runs_folder(trained_place):
    with Mounted(trained_place.runs, 16384) as disk:
        disk.remount("ro")
        check(trained_place.train(), ENVIRONMENT, "runs", "ead-only file system")


@pytest.mark.parametrize("size", [4, 12, 40])  # nothing fits; the records do, the first checkpoint does not
def test_full_disk_at_the_start(trained_place, size):
    with Mounted(trained_place.runs, size):
        check(trained_place.train(), ENVIRONMENT, "No space left on device")


def test_disk_that_fills_up_keeps_the_newest_checkpoints(trained_place):
    edit(trained_place, "every: [1 epoch], keep: 3", "every: [1 steps], keep: 100")
    with Mounted(trained_place.runs, 4096):  # a checkpoint has 260 KiB, and there would be 32
        result = trained_place.train()
        assert result.code == 0 and "the disk is nearly full: " in result.err and "removed to make room" in result.err, result
        run = trained_place.run_directory()
        saved = checkpoints(run)
        assert max(saved) == 32 and len(saved) < 16 and not list((run / "checkpoints").glob("*.tmp"))
        assert [line["step"] for line in metrics(run)] == list(range(1, 33))


# Another program fills the disk while this one trains.
def test_disk_that_is_filled_by_others_in_the_middle(trained_place):
    edit(trained_place, "epochs: 2", "steps: 1000000")
    edit(trained_place, "every: [1 epoch], keep: 3", "every: [5 steps], keep: 2")
    with Mounted(trained_place.runs, 16384):
        with trained_place.start_training() as program:
            wait_until(lambda: trained_place.run_directories() and checkpoints(trained_place.run_directory()),
                       "a checkpoint")
            subprocess.run(["dd", "if=/dev/zero", f"of={trained_place.runs}/filler", "bs=64k"], capture_output=True)
            result = program.finish()
        assert result.code == ENVIRONMENT and "No space left on device" in result.err, result
        run = trained_place.run_directory()
        newest = max(checkpoints(run))
        (trained_place.runs / "filler").unlink()
        result = trained_place.run("train", "recipe.yaml", "--dry-run", "--json")
        assert result.code == 0 and result.summary["from_step"] == newest, result


def test_stdout_that_is_full_is_an_error(trained_place):
    with open("/dev/full", "w") as full:
        with trained_place.start_training(stdout=full) as program:
            result = program.finish()
    assert result.code == ENVIRONMENT and "No space left" in result.err, result
