"""What training can do beyond the plain loop: memory, early stopping, the best checkpoint, loss spikes, other targets; and
what comes after it: eval, export, initial weights."""
import json
import os
import stat

import pytest

from harness import assert_same_training, checkpoints, metrics, newest_state, write_idx

CONVNET = "{name: convnet, classes: 10, width: 16}"


def lines_of(run, name):
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


# ---------------------------------------------------------------------------------------------------------------------
# memory

def test_out_of_memory_halves_the_micro_batches_and_trains_the_same(place):
    write_idx(place.folder / "mnist", train=128, test=32, side=28)
    place.write_recipe(model=CONVNET, batch=64, length="steps: 4", devices=1)
    asked = place.train("--runs", "whole", "--set", "train.slot=64")
    assert asked.code == 0, asked
    peaks = asked.summary["memory"]
    budget = peaks["backward_peak_bytes"] // 2
    result = place.train("--set", "train.slot=64", "--set", f"memory_budget={budget} B")
    assert result.code == 0, result
    assert "micro-batches of" in result.err and "out of memory" in result.err.lower()
    slot = result.summary["slot"]
    assert slot < 64 and max(result.summary["memory"].values()) <= budget
    # The loss curve is that of a run that was told so from the start.
    told = place.train("--runs", "told", "--set", f"train.slot={slot}")
    assert told.code == 0, told
    (reference,) = (place.folder / "told/case").iterdir()
    assert_same_training(place.run_directory(), reference)


def test_resnet50_in_a_quarter_of_the_memory_has_the_same_loss_curve(place):
    model, data = "{name: resnet50, classes: 10}", "{format: synthetic, samples: 64, channels: 3, height: 96, width: 96}"
    place.write_recipe(model=model, batch=16, length="steps: 2", devices=1)
    sets = ["--set", f"data.train={data}", "--set", "data.eval=null", "--set", "train.optimizer={name: sgd, lr: 0.01}",
            "--set", "checkpoint.every=[]"]
    told = place.train("--runs", "told", *sets, "--set", "train.slot=4")
    assert told.code == 0, told
    # Fits micro-batches of 4 and, as their activations are far more than 8 % of it, none of 8.
    budget = int(max(told.summary["memory"].values()) * 1.08)
    result = place.train(*sets, "--set", "train.slot=16", "--set", f"memory_budget={budget} B")
    assert result.code == 0, result
    assert result.summary["slot"] == 4 and max(result.summary["memory"].values()) <= budget, result.summary
    (reference,) = (place.folder / "told/case").iterdir()
    assert [line["loss"] for line in metrics(place.run_directory())] == [line["loss"] for line in metrics(reference)]
    assert_same_training(place.run_directory(), reference)


def test_a_sample_that_does_not_fit_is_told_in_one_line(trained_place):
    for budget in ("200 KiB", "400 KiB"):  # too small for the model, and for the step of one sample
        result = trained_place.train("--resume", "never", "--set", f"memory_budget={budget}")
        assert result.code == 5, result
        assert any("memory_budget" in line and budget.split()[0] in line for line in result.err.splitlines()), result


def test_an_automatic_batch_fills_the_budget_and_is_replayed(place):
    write_idx(place.folder / "mnist", train=1280, test=32)
    place.write_recipe(model=CONVNET, length="epochs: 1")
    sets = ["--set", "train.batch=auto", "--set", "memory_budget=24 MiB"]
    result = place.train(*sets)
    assert result.code == 0, result
    recipe = json.loads((place.run_directory() / "recipe.json").read_text())
    batch = recipe["train"]["batch"]
    assert batch % 2 == 0 and 2 <= batch <= 128 and "train.batch" in result.err, result
    assert "micro-batches of" not in result.err, result  # what was chosen does fit
    assert result.summary["steps"] == -(-1280 // batch)
    larger = place.train("--resume", "never", "--set", "train.batch=auto", "--set", "memory_budget=1 GiB")
    assert larger.code == 0, larger
    newest = json.loads((place.run_directories()[-1] / "recipe.json").read_text())
    assert newest["train"]["batch"] == 128, newest["train"]  # a tenth of the data is the most
    again = place.train(*sets, "--resume", place.run_directories()[0])
    assert again.code == 0 and "nothing left to do" in again.err, again


def test_a_model_larger_than_the_machine_ends_before_the_kernel_ends_it(trained_place):
    model = "{name: mlp, classes: 1000000, hidden: [65536]}"  # 262 GB
    result = trained_place.train("--set", f"model={model}")
    assert result.code == 5, result
    assert "memory" in result.err and "checkpoint" not in result.err, result


# ---------------------------------------------------------------------------------------------------------------------
# evaluations that steer the run

def test_early_stopping_ends_a_run_that_gets_no_better(trained_place):
    # With such a small rate nothing becomes better by 0.5.
    sets = ["--set", "train.optimizer.lr=1e-6", "--set", "train.epochs=9",
            "--set", "train.early_stop={metric: loss, patience: 2, min_delta: 0.5}"]
    result = trained_place.train(*sets)
    assert result.code == 0, result
    assert result.summary["stopped_early"] and result.summary["steps"] == 3 * 16
    assert "stopped early" in result.err
    again = trained_place.train(*sets)
    assert again.code == 0 and "nothing left to do" in again.err


def test_the_best_checkpoint_is_kept_and_can_be_evaluated(place):
    write_idx(place.folder / "mnist")
    # So easy that no later evaluation is better than an early one.
    place.write_recipe(length="epochs: 6", keep=1)
    result = place.train("--set", "checkpoint.best=top1")
    assert result.code == 0, result
    run, best = place.run_directory(), result.summary["best"]
    top1 = {line["step"]: line["eval"]["top1"] for line in metrics(run, "evaluations")}
    assert best["step"] == max(top1, key=top1.get) < 96, top1
    assert sorted(checkpoints(run)) == [best["step"], 96]
    evaluated = place.run("eval", run, "--best", "--json")
    assert evaluated.code == 0, evaluated
    assert evaluated.summary["step"] == best["step"]
    assert evaluated.summary["loss"] == pytest.approx(best["loss"], abs=1e-6)


@pytest.mark.parametrize("action", ["record", "skip", "rollback"])
def test_loss_spikes_are_found_and_acted_on(trained_place, action):
    spike = f"{{threshold: 0.5, window: 4, action: {action}}}"  # so low that noise is enough
    result = trained_place.train("--set", f"train.loss_spike={spike}", "--set", "train.epochs=3",
                                 "--set", "train.optimizer.lr=1e-5")
    assert result.code == 0, result
    spikes = lines_of(trained_place.run_directory(), "spikes.jsonl")
    assert spikes and all(line["action"] == action and len(line["samples"]) == 16 for line in spikes)
    assert all(line["loss"] > line["mean"] for line in spikes)
    skipped = result.summary.get("skipped_steps", 0)
    if action == "record":
        assert skipped == 0
    elif action == "skip":
        assert skipped == len(spikes)
    else:
        assert skipped >= len(spikes)
    assert [line["step"] for line in metrics(trained_place.run_directory())] == list(range(1, 49))


# ---------------------------------------------------------------------------------------------------------------------
# after training

def test_eval_says_what_the_run_said(trained_place):
    trained = trained_place.train("--set", "train.ema=0.9")
    assert trained.code == 0, trained
    run = trained_place.run_directory()
    result = trained_place.run("eval", run, "--json")
    assert result.code == 0, result
    for key in ("loss", "top1", "top5", "f1"):
        assert result.summary[key] == pytest.approx(trained.summary["eval"][key], abs=1e-6), key
    assert sum(map(sum, result.summary["confusion"])) == 64
    table = trained_place.run("eval", run)
    assert table.code == 0 and "top-1" in table.out and not table.err.count("Traceback")


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_exported_weights_are_the_model(trained_place, ending):
    trained = trained_place.train("--set", "model=" + CONVNET)
    assert trained.code == 0, trained
    run, path = trained_place.run_directory(), trained_place.folder / f"model.{ending}"
    exported = trained_place.run("export", run, "-o", path, "--json")
    assert exported.code == 0, exported
    assert exported.summary["tensors"] == len([n for n in newest_state(run) if n.startswith("model.")])
    result = trained_place.run("eval", run, "--weights", path, "--json")
    assert result.code == 0, result
    assert result.summary["loss"] == pytest.approx(trained.summary["eval"]["loss"], abs=1e-6)
    # And a new run starts where the old one ended.
    begun = trained_place.train("--resume", "never", "--set", "model=" + CONVNET, "--set", f"model.init={path}",
                                "--set", "train.steps=1", "--set", "train.optimizer.lr=1e-9")
    assert begun.code == 0, begun
    assert begun.summary["eval"]["loss"] == pytest.approx(trained.summary["eval"]["loss"], abs=0.1)  # one step moved the running statistics
    assert "initial weights" in begun.err


def test_the_running_mean_is_exported_unless_raw_is_asked_for(trained_place):
    assert trained_place.train("--set", "train.ema=0.9").code == 0
    run, state = trained_place.run_directory(), newest_state(trained_place.run_directory())
    for flags, prefix in (([], "ema."), (["--raw"], "model.")):
        path = trained_place.folder / "weights.safetensors"
        result = trained_place.run("export", run, "-o", path, *flags, "--json")
        assert result.code == 0, result
        content = path.read_bytes()
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        begin, end = header["fc1.bias"]["data_offsets"]
        data = 8 + int.from_bytes(content[:8], "little")
        assert content[data + begin:data + end] == state[prefix + "fc1.bias"][2]


def test_weights_that_do_not_fit_are_listed_and_can_be_left_out(trained_place):
    assert trained_place.train().code == 0
    path = trained_place.folder / "model.pt"
    assert trained_place.run("export", trained_place.run_directory(), "-o", path).code == 0
    sets = ["--resume", "never", "--set", f"model.init={path}", "--set", "model.classes=12"]
    result = trained_place.train(*sets)
    assert result.code == 4, result
    assert "fc1.weight is F32 [10, 3200], the model has F32 [12, 3200]" in result.err
    result = trained_place.train(*sets, "--set", "model.init_except=fc1.*")
    assert result.code == 0, result
    assert "2 tensors keep the model's own values" in result.err
    result = trained_place.train(*sets, "--set", "model.init_except=head.*")
    assert result.code == 4, result


@pytest.mark.parametrize("arguments,code,text", [
    (["eval", "nowhere"], 2, "there is no such file or folder"),
    (["eval", "."], 2, "is neither a run directory nor a checkpoint of one"),
    (["eval", "recipe.yaml"], 3, "there are no weights"),
    (["eval", "RUN", "--step", "5"], 2, "there are steps 32, 16"),
    (["eval", "RUN", "--best"], 2, "did not follow its best evaluation"),
    (["eval", "RUN", "--step", "16", "--best"], 2, "give one of them"),
    (["eval", "RUN", "--set", "data.eval=null"], 3, "there is nothing to evaluate on"),
    (["export", "RUN", "-o", "model.bin"], 2, "does not say a format by its ending"),
    (["export", "RUN", "-o", "none/model.pt"], 2, "there is no folder"),
    (["export", "RUN", "-o", "model.pt", "--format", "onnx"], 2, "is none of pt, safetensors, torchscript"),
    (["eval", "RUN", "--weights", "recipe.yaml"], 4, "recipe.yaml"),
])
def test_wrong_requests_for_a_model(trained_place, arguments, code, text):
    assert trained_place.train().code == 0
    run = str(trained_place.run_directory())
    result = trained_place.run(*(run if word == "RUN" else word for word in arguments))
    assert result.code == code, result
    assert text in result.err, result


# A run that had trained within its budget ran out of memory in `skytrain eval`, which asked for the whole machine.
def test_eval_keeps_within_the_memory_budget(place):
    write_idx(place.folder / "mnist", train=32, test=64, side=28)
    place.write_recipe(model=CONVNET, length="steps: 1")
    assert place.train().code == 0
    run = place.run_directory()
    whole = place.run("eval", run, "--json", "--set", "eval.batch=64", "--set", "devices=1")
    assert whole.code == 0 and "evaluating in batches" not in whole.err, whole
    halved = place.run("eval", run, "--json", "--set", "eval.batch=64", "--set", "devices=1",
                       "--set", "memory_budget=3 MiB")
    assert halved.code == 0 and "evaluating in batches of 32" in halved.err, halved
    assert halved.summary["loss"] == pytest.approx(whole.summary["loss"], abs=1e-6)
    assert halved.summary["confusion"] == whole.summary["confusion"]
    refused = place.run("eval", run, "--json", "--set", "memory_budget=100 KiB")
    assert refused.code == 5 and "memory_budget" in refused.err, refused


def test_export_replaces_files_only(trained_place):
    assert trained_place.train("--set", "train.steps=1").code == 0
    run, folder = trained_place.run_directory(), trained_place.folder
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    for name in ("pipe", "folder"):
        result = trained_place.run("export", run, "-o", name, "--format", "pt")
        assert result.code == 2 and "is there already and no file" in result.err, result
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode) and (folder / "folder").is_dir()
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere/model.pt").write_text("the old one")
    (folder / "link.pt").symlink_to("elsewhere/model.pt")
    result = trained_place.run("export", run, "-o", "link.pt")
    assert result.code == 0, result
    assert (folder / "link.pt").is_symlink()
    assert (folder / "elsewhere/model.pt").read_bytes().startswith(b"PK")

    # Flags that would change nothing are no wishes that were granted.
    for flags, flag in ((["--set", "train.ema=0.9"], "--set"), (["--weights", "link.pt", "--raw"], "--raw"),
                        (["--format", "torchscript", "--raw"], "--raw")):
        result = trained_place.run("export", run, "-o", "new.pt", *flags)
        assert result.code == 2 and flag in result.err, result
        assert not (folder / "new.pt").exists()


# ---------------------------------------------------------------------------------------------------------------------
# targets that are values

def write_table(path, rows):
    # y = 2 a - b + 1, z = whether a > b
    lines = ["a,b,y,z"]
    for i in range(rows):
        a, b = (i * 37 % 101) / 101 - 0.5, (i * 53 % 89) / 89 - 0.5
        lines.append(f"{a:.5f},{b:.5f},{2 * a - b + 1:.5f},{int(a > b)}")
    path.write_text("\n".join(lines) + "\n")


TABLE = """\
version: 1
name: case
model: {{name: mlp, classes: 1, hidden: [16]}}
data:
  train: {{format: csv, path: train.csv, target: {target}}}
  eval: {{format: csv, path: eval.csv, target: {target}}}
train:
  epochs: 30
  batch: 16
  loss: {loss}
  optimizer: {{name: adam, lr: 0.01}}
  precision: fp32
"""


@pytest.mark.parametrize("loss,target,metric", [("mse", "y", "rmse"), ("bce", "z", "accuracy")])
def test_values_are_learned_from_a_table(place, loss, target, metric):
    write_table(place.folder / "train.csv", 400)
    write_table(place.folder / "eval.csv", 100)
    other = "z" if target == "y" else "y"
    for name in ("train.csv", "eval.csv"):  # the other target is no feature
        path = place.folder / name
        column = path.read_text().splitlines()[0].split(",").index(other)
        path.write_text("\n".join(",".join(v for i, v in enumerate(line.split(",")) if i != column)
                                  for line in path.read_text().splitlines()) + "\n")
    (place.folder / "recipe.yaml").write_text(TABLE.format(loss=loss, target=target))
    result = place.train()
    assert result.code == 0, result
    value = result.summary["eval"][metric]
    assert value < 0.1 if metric == "rmse" else value > 0.95, result
    assert "top1" not in result.summary["eval"]
    assert (place.run_directory() / "report.html").exists()


# The model went to another machine without its training data, and could be neither evaluated nor exported there.
def test_what_is_trained_needs_its_training_data_no_more(place):
    write_table(place.folder / "train.csv", 64)
    write_table(place.folder / "eval.csv", 40)
    (place.folder / "recipe.yaml").write_text(TABLE.format(loss="mse", target="y"))
    trained = place.train("--set", "train.epochs=1")
    assert trained.code == 0, trained
    run = place.run_directory()
    (place.folder / "train.csv").unlink()
    rows = [line.split(",") for line in (place.folder / "eval.csv").read_text().splitlines()]
    (place.folder / "eval.csv").write_text("\n".join(",".join(reversed(row)) for row in rows) + "\n")
    result = place.run("eval", run, "--json")  # features are told by their names, which the run remembers
    assert result.code == 0, result
    assert result.summary["loss"] == pytest.approx(trained.summary["eval"]["loss"], abs=1e-6)
    result = place.run("export", run, "-o", "model.pt", "--format", "torchscript")
    assert result.code == 0 and (place.folder / "model.pt").read_bytes().startswith(b"PK"), result
