"""The number of devices and the evaluation batch do not change what a recipe means."""
import pytest

from harness import Workplace, assert_same_training, metrics, write_idx


def trained(place, runs, *arguments):
    result = place.train("--runs", runs, *arguments)
    assert result.code == 0, result
    other = Workplace(place.folder)
    other.runs = place.folder / runs
    return other.run_directory(), result.summary


# Batch norm over slots of four amplifies rounding a thousandfold within a dozen steps, so the convnet runs at a small
# rate; parity_test.cc compares replicas in fp64, where nothing is lost.
@pytest.mark.parametrize("model, lr", [("{name: simplecnn, classes: 10}", 0.01), ("{name: mlp, classes: 10}", 0.01),
                                       ("{name: convnet, classes: 10, width: 8}", 1e-4)])
def test_one_and_two_devices_give_the_same_curve_with_the_same_slot(place, model, lr):
    write_idx(place.folder / "mnist", train=200)  # the last batch of an epoch is short
    place.write_recipe(model=model, length="epochs: 3", optimizer=f"{{name: sgd, lr: {lr}, momentum: 0.9}}")
    one, one_summary = trained(place, "one", "--set", "devices=1", "--set", "train.slot=4")
    two, two_summary = trained(place, "two", "--set", "devices=2", "--set", "train.slot=4")
    assert (one_summary["devices"], two_summary["devices"]) == (1, 2)
    for a, b in zip(metrics(one), metrics(two), strict=True):
        assert a["step"] == b["step"] and a["lr"] == b["lr"] and a["samples"] == b["samples"]
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-4), a["step"]


def test_more_devices_than_slots_train_too(place):
    write_idx(place.folder / "mnist", train=70)
    place.write_recipe()
    run, summary = trained(place, "many", "--set", "devices=5", "--set", "train.slot=8")
    assert summary["devices"] == 5 and summary["samples"] == 140
    one, _ = trained(place, "one", "--set", "devices=1", "--set", "train.slot=8")
    for a, b in zip(metrics(one), metrics(run), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-4), a["step"]


# Padding for equal ranks counted samples twice elsewhere, and a short last batch weighed as much as a full one.
def test_evaluation_counts_each_sample_once_for_any_batch_and_devices(place):
    write_idx(place.folder / "mnist", train=64, test=21)
    place.write_recipe(length="steps: 10")
    results = []
    for batch, devices in ((1, 1), (4, 1), (5, 2), (7, 2), (8, 2), (20, 2), (21, 1), (64, 2)):
        _, summary = trained(place, f"eval-{batch}-{devices}", "--set", f"eval.batch={batch}", "--set",
                             f"devices={devices}", "--set", "train.slot=8")
        results.append(summary["eval"])
    assert {result["samples"] for result in results} == {21}
    assert len({result["top1"] for result in results}) == 1, results
    assert max(r["loss"] for r in results) - min(r["loss"] for r in results) < 1e-6, results


def test_two_runs_of_one_recipe_are_equal_bit_for_bit(trained_place):
    first, _ = trained(trained_place, "first")
    second, _ = trained(trained_place, "second")
    assert_same_training(first, second)
