"""Inputs from real users' troubles with other tools, from the data folder beside the repository (SKYTRAIN_SHARED)."""
import json
import math
import os
import pathlib
import shutil
import struct

import pytest

from harness import ROOT, Program, Workplace, assert_same_training, checkpoints, metrics

SHARED = pathlib.Path(os.environ.get("SKYTRAIN_SHARED") or ROOT.parent / "shared")


def case_folder(name):
    folder = SHARED / "cases" / name
    assert folder.is_dir(), f"{folder} is missing: SKYTRAIN_SHARED names the data folder"
    return folder


def expectation(name):
    return json.loads((case_folder(name) / "expect.json").read_text())


def train(case, place, *arguments, recipe="recipe.yaml"):
    """Runs from the case's own folder; runs go to the test's."""
    with Program(["train", recipe, "--json", "--runs", place.runs, *arguments], case_folder(case)) as program:
        return program.finish()


def refused(result, code, lines=4):
    assert result.code == code, result
    assert 1 <= len(result.err.strip("\n").splitlines()) <= lines, result
    return result.summary["error"]


def test_html_named_gz(place):
    result = train("idx-html-gz", place)
    refused(result, 4)
    assert "train-images-idx3-ubyte.gz" in result.err and "not gzip" in result.err and "HTML" in result.err


class TestWarmupEdges:
    @pytest.mark.parametrize("name", ["zero", "one", "equal_total", "percent_100", "past_total"])
    def test_accepted(self, place, name):
        expected = expectation("warmup-edges")
        result = train("warmup-edges", place, "--log-every", "1", recipe=f"{name}.yaml")
        if name == "past_total" and result.code != 0:
            refused(result, 3)
            return
        assert result.code == 0, result
        rates = [line["lr"] for line in metrics(place.run_directory())]
        base = expected["base_lr"]
        assert len(rates) == expected["total_steps"]
        assert all(math.isfinite(rate) and 0 <= rate <= base for rate in rates) and rates[0] > 0
        if name == "zero":
            assert rates[0] == base
        if name in ("equal_total", "percent_100"):
            assert rates == sorted(rates) and rates[-1] == pytest.approx(base)
            assert rates[0] == pytest.approx(base / 10)
        if name == "past_total":
            assert "warmup" in result.err, "the cut ramp is noticed"

    @pytest.mark.parametrize("name", expectation("warmup-edges")["refuse"] if SHARED.is_dir() else ["missing"])
    def test_refused(self, place, name):
        result = train("warmup-edges", place, recipe=f"{name}.yaml")
        refused(result, 3)
        assert f"{name}.yaml:" in result.err and "warmup" in result.err


def test_numbers_of_yaml(place):
    for name, expected in expectation("yaml-numbers").items():
        result = train("yaml-numbers", place, "--explain", recipe=name)
        if "exit" in expected:
            refused(result, expected["exit"])
            assert f"{name}:11:" in result.err and "train.optimizer.lr" in result.err, result
        elif isinstance(expected["lr"], str):  # "0.001 or refused": never the text
            if result.code != 0:
                refused(result, 3)
            else:
                assert result.summary["recipe"]["train"]["optimizer"]["lr"] == 0.001
        else:
            assert result.code == 0, (name, result)
            assert result.summary["recipe"]["train"]["optimizer"]["lr"] == expected["lr"], name


# `--set x=false` stored the text "false", which counts as true.
SET_VALUES = {
    "train.deterministic=false": ("train.deterministic", False),
    "train.deterministic=False": ("train.deterministic", False, "or refused"),
    "train.deterministic=": "refused",
    "train.clip_norm=null": ("train.clip_norm", None),
    "train.optimizer.lr=1e-3": ("train.optimizer.lr", 0.001),
    "name=false": ("name", "false"),
    "name=a=b": ("name", "a=b", "or refused"),  # = may not be in a name
    "train.batch=8.0": ("train.batch", 8, "or refused"),
    "train.batch=1e1": ("train.batch", 10, "or refused"),
    "train.bath=8": "refused",
    "data.transforms=[]": ("data.transforms", []),
    "train": "refused",
}


def at(recipe, key):
    for part in key.split("."):
        recipe = recipe[part]
    return recipe


@pytest.mark.parametrize("value", SET_VALUES)
def test_set_values(place, value):
    expected = SET_VALUES[value]
    result = train("set-values", place, "--set", value, "--explain")
    if expected == "refused" or (result.code != 0 and len(expected) == 3):
        refused(result, 3)
        assert f"--set {value}" in result.err and "recipe.yaml:" not in result.err, result
        if value == "train.bath=8":
            assert 'did you mean "batch"' in result.err
    else:
        assert result.code == 0, result
        found = at(result.summary["recipe"], expected[0])
        assert found == expected[1] and type(found) is type(expected[1]), (found, expected)


def test_set_a_whole_section(place):
    result = train("set-values", place, "--set", "train.optimizer={name: adam, lr: 1e-3}", "--explain")
    assert result.code == 0, result
    optimizer = result.summary["recipe"]["train"]["optimizer"]
    assert (optimizer["name"], optimizer["lr"]) == ("adam", 0.001)


def test_the_later_set_wins(place):
    result = train("set-values", place, "--set", "train.epochs=2", "--set", "train.epochs=3", "--explain")
    assert result.code in (0, 3), result
    if result.code == 0:
        assert "3" in str(result.summary["recipe"]["train"]["epochs"])


class TestResumeEdges:
    @pytest.mark.parametrize("k", expectation("resume-edges")["stop_after_steps"] if SHARED.is_dir() else [1])
    def test_stopped_after_step(self, place, k):
        expected = expectation("resume-edges")
        reference = Workplace(place.folder)
        reference.runs = place.folder / "reference"
        assert train("resume-edges", reference, "--log-every", "1").code == 0
        run = place.runs / "case" / reference.run_directory().name
        shutil.copytree(reference.run_directory(), run)
        (run / "summary.json").unlink()
        for step, path in checkpoints(run).items():
            if step > k:
                shutil.rmtree(path)
        result = train("resume-edges", place, "--log-every", "1")
        assert result.code == 0, result
        assert [line["step"] for line in metrics(run)] == expected["metrics_steps"]
        assert_same_training(run, reference.run_directory())
        again = train("resume-edges", place, "--log-every", "1")
        assert again.code == 0 and "nothing left to do" in again.err
        assert [line["step"] for line in metrics(run)] == expected["metrics_steps"]


def test_evaluation_is_exact_for_any_batch_and_devices(place):
    expected = expectation("eval-exact")
    batches = expected["eval_batches_to_try"]
    tries = [(batch, 1) for batch in batches]
    tries += [(batch, devices) for devices in expected["devices_to_try"][1:] for batch in (batches[0], batches[3])]
    results = []
    for batch, devices in tries:
        result = train("eval-exact", place, "--set", f"eval.batch={batch}", "--set", f"devices={devices}", "--set",
                       "train.slot=4", "--resume", "never")
        assert result.code == 0, result
        results.append(result.summary["eval"])
    assert {result["samples"] for result in results} == {expected["eval_samples"]}
    assert len({result["top1"] for result in results}) == 1, results
    losses = [result["loss"] for result in results]
    assert max(losses) - min(losses) < expected["loss_tolerance"], losses


class TestNewestCheckpoint:
    @pytest.fixture
    def run(self, place):
        """An incomplete run of 12 steps with a checkpoint of each."""
        assert train("ckpt-newest", place).code == 0
        run = place.run_directory()
        (run / "summary.json").unlink()
        return run

    @staticmethod
    def keep(run, **names):
        """Leaves exactly the given folders: new name -> the step that it holds."""
        folder = run / "checkpoints"
        saved = checkpoints(run)
        made = folder.with_name("made")
        made.mkdir()
        for name, step in names.items():
            shutil.copytree(saved[step], made / name)
        shutil.rmtree(folder)
        made.rename(folder)

    def resumed_from(self, place):
        result = train("ckpt-newest", place, "--dry-run")
        assert result.code == 0, result
        full = train("ckpt-newest", place)
        assert full.code == 0, full
        return result.summary["from_step"], full.err

    def test_text_order_is_not_number_order(self, place, run):
        self.keep(run, **{"step-999": 9, "step-1000": 10})
        step, err = self.resumed_from(place)
        assert step in (0, 10), err  # 0: both passed over, because name and manifest disagree
        if step == 0:
            assert "step-999" in err and "step-1000" in err, err

    def test_other_names_do_not_count(self, place, run):
        self.keep(run, **{"step-00000010": 10, "handpicked": 11, "step-00000009.tmp": 9})
        assert self.resumed_from(place)[0] == 10

    def test_one_without_a_manifest_is_passed_over_and_named(self, place, run):
        self.keep(run, **{"step-00000010": 10, "step-00000009": 9})
        (run / "checkpoints/step-00000010/manifest.json").unlink()
        step, err = self.resumed_from(place)
        assert step == 9 and "step-00000010" in err and "manifest" in err, err


# Weights that Python's safetensors would refuse are refused as a checkpoint too: by name, and the older one is used.
def test_broken_safetensors_in_a_checkpoint(place):
    assert train("ckpt-newest", place).code == 0
    run = place.run_directory()
    (run / "summary.json").unlink()
    newest = checkpoints(run)[max(checkpoints(run))]
    tensors = next(newest.glob("*.safetensors"))
    content = bytearray(tensors.read_bytes())
    content[:8] = struct.pack("<Q", 1 << 62)
    tensors.write_bytes(content)
    result = train("ckpt-newest", place)
    assert result.code == 0 and newest.name in result.err, result


# A launcher took its program's flags for its own.
@pytest.mark.parametrize("marked", [True, False])
def test_run_passes_the_commands_words_on(marked):
    expected = expectation("run-args")
    command = list(expected["command"])
    if not marked:
        command.remove("--")  # the first one
    with Program(command, case_folder("run-args")) as program:
        result = program.finish()
    assert result.code == 0, result
    ranks = {}
    for line in result.out.splitlines():
        prefix, shown = line.split(" ", 1)
        ranks[prefix] = json.loads(shown)
    assert sorted(ranks) == ["[0]", "[1]"]
    for i, rank in enumerate(ranks[key] for key in sorted(ranks)):
        assert rank["argv"] == expected["argv_in_each_rank"] and rank["cwd"] == "run-args"
        env = rank["env"]
        assert env["RANK"] == expected["env"]["RANK"][i] and env["LOCAL_RANK"] == expected["env"]["LOCAL_RANK"][i]
        assert env["WORLD_SIZE"] == expected["env"]["WORLD_SIZE"] and env["MASTER_PORT"].isdigit()
    assert len({rank["env"]["MASTER_PORT"] for rank in ranks.values()}) == 1
