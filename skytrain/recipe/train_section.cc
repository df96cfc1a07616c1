#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/recipe/sections.h"

namespace skytrain::recipe {
namespace {

using Unit = Duration::Unit;

constexpr double kMaxEpochs = 1e6;
constexpr int64_t kMaxRunSamples = (int64_t{1} << 62) - 1;

// `epochs` and `steps` are two ways to say one length. The later source wins (--set over the file, a later --set over
// an earlier one); both in one source is a contradiction, left for the check to report.
void settle_length(Value* train) {
  const Value* const epochs = train->find("epochs");
  const Value* const steps = train->find("steps");
  if (epochs == nullptr || steps == nullptr) return;
  const auto order = [](const Place& p) {
    return p.source == Place::Source::kSet ? static_cast<int64_t>(p.override_index) : int64_t{-1};
  };
  const int64_t difference = order(epochs->place) - order(steps->place);
  if (difference == 0) return;
  const char* const loser = difference > 0 ? "steps" : "epochs";
  train->members.erase(std::find_if(train->members.begin(), train->members.end(),
                                    [&](const Value::Member& member) { return member.name == loser; }));
}

void check_train(const TrainSpec& train, const Value& value, Reader& reader) {
  if (value.find("epochs") != nullptr && value.find("steps") != nullptr) {
    const Reader::Scope scope(reader, "steps");
    reader.problem(value.find("steps")->place, "the length is given twice, as epochs and as steps",
                   "remove one of them");
  }
  const auto* const steps = value.find("steps");
  if (steps != nullptr && train.length.unit == Unit::kSteps &&
      static_cast<int64_t>(train.length.value) > kMaxRunSamples / std::max<int64_t>(1, train.batch)) {
    const Reader::Scope scope(reader, "steps");
    reader.problem(steps->place,
                   str(static_cast<int64_t>(train.length.value), " steps of ", train.batch,
                       " samples are more samples than can be counted"),
                   "lower steps or batch");
  }
  if (train.slot && train.batch > 0 && *train.slot > train.batch) {
    const Reader::Scope scope(reader, "slot");
    reader.problem(value.find("slot")->place, str("is ", *train.slot, ", more than the batch of ", train.batch),
                   "a slot is a part of the batch: lower it, or set auto");
  }
  if (train.label_smoothing > 0 && train.loss != "cross_entropy") {
    const Reader::Scope scope(reader, "label_smoothing");
    reader.problem(value.find("label_smoothing")->place, "is for the loss cross_entropy, not for " + train.loss,
                   "remove it");
  }
  if (train.schedule.name == "one_cycle" && train.schedule.cycle_momentum && train.optimizer.name == "sgd" &&
      train.optimizer.momentum == 0) {
    const Reader::Scope scope(reader, "schedule");
    reader.problem(value.find("schedule")->place, "one_cycle cycles the momentum, and sgd has none here",
                   "give train.optimizer.momentum, or set cycle_momentum: false");
  }
  if (train.schedule.min_lr > train.optimizer.lr) {
    const Reader::Scope schedule(reader, "schedule");
    const Reader::Scope scope(reader, "min_lr");
    reader.problem(value.find("schedule")->find("min_lr")->place,
                   str("is ", shortest_double(train.schedule.min_lr), ", more than the learning rate of ",
                       shortest_double(train.optimizer.lr)),
                   "the schedule goes down from lr to min_lr");
  }
}

void add_length(Section<TrainSpec>& s) {
  const auto get = [](const TrainSpec& t) { return t.length.value; };
  auto& epochs = s.add_translated<double>(
      "epochs", described_as("number, > 0", real({.min = 0, .max = kMaxEpochs, .above_min = true})), get,
      [](TrainSpec* t, const double& value) {
        t->length = {value, Unit::kEpochs};
      },
      "length of the run in passes over the data");
  epochs.present = [](const TrainSpec& t) { return t.length.unit == Unit::kEpochs; };
  // 2 epochs are written as 2, not as 2.0.
  epochs.write = [](const TrainSpec& t) {
    const double value = t.length.value;
    return value == std::floor(value) && value < 1e15 ? OrderedJson(static_cast<int64_t>(value)) : OrderedJson(value);
  };
  auto& steps = s.add_translated<int64_t>(
      "steps", described_as("integer, 1 or more", integer({1, kMaxCount})),
      [](const TrainSpec& t) { return static_cast<int64_t>(t.length.value); },
      [](TrainSpec* t, const int64_t& value) {
        t->length = {static_cast<double>(value), Unit::kSteps};
      },
      "length of the run in optimizer steps, in place of epochs");
  steps.present = [](const TrainSpec& t) { return t.length.unit == Unit::kSteps; };
  // The default is in epochs: `steps` has none, and an origin for `epochs` only where epochs say the length.
  const auto nothing = [](const Place&, Reader&, TrainSpec*) {};
  steps.read_absent = nothing;
}

const Section<EarlyStopSpec>& early_stop_section() {
  static const Section<EarlyStopSpec>* const section = [] {
    auto* s = new Section<EarlyStopSpec>;
    s->add("metric", &EarlyStopSpec::metric, choice("metric", {"loss", "top1"}), "of the evaluation");
    s->add("patience", &EarlyStopSpec::patience, integer({1, kMaxCount}), "evaluations in a row that are not better");
    s->add("min_delta", &EarlyStopSpec::min_delta, real({.min = 0}), "a change below it is not better");
    return s;
  }();
  return *section;
}

const Section<LossSpikeSpec>& loss_spike_section() {
  static const Section<LossSpikeSpec>* const section = [] {
    auto* s = new Section<LossSpikeSpec>;
    s->add("threshold", &LossSpikeSpec::threshold, real({.min = 0, .above_min = true}),
           "standard deviations above the moving mean");
    s->add("window", &LossSpikeSpec::window, integer({2, kMaxCount}), "steps that mean and deviation are of");
    s->add(
        "action", &LossSpikeSpec::action, choice("action", {"record", "skip", "rollback"}),
        "record: the step and its samples go to spikes.jsonl; skip: its update is not made either; rollback: the run "
        "goes back to the checkpoint before it, and skips it there");
    return s;
  }();
  return *section;
}

}  // namespace

const Section<TrainSpec>& train_section() {
  static const Section<TrainSpec>* const section = [] {
    auto* s = new Section<TrainSpec>;
    add_length(*s);
    s->add_translated<std::optional<int64_t>>(
        "batch", optional_with("auto", integer({1, 1'000'000'000})),
        [](const TrainSpec& t) { return t.batch == 0 ? std::nullopt : std::optional(t.batch); },
        [](TrainSpec* t, const std::optional<int64_t>& batch) { t->batch = batch.value_or(0); },
        "samples per optimizer step over all devices; auto: the largest power of two for each device that fits into "
        "memory, "
        "at most a tenth of the data and 4,096",
        {.required = true, .continuity = Continuity::kAutoMatchesAll});
    s->add("slot", &TrainSpec::slot, optional_with("auto", integer({1, 1'000'000'000})),
           "samples per micro-batch, at most batch; results depend on it a little, on the number of devices by "
           "rounding only",
           {.continuity = Continuity::kAutoMatchesAll});
    s->add("loss", &TrainSpec::loss, choice("loss", {"cross_entropy", "mse", "bce"}),
           "what is minimised: cross entropy of the classes; mean squared error; binary cross entropy of each output, "
           "which is a logit. With data of classes, mse and bce aim at 1 for the class and 0 for the others");
    s->add("label_smoothing", &TrainSpec::label_smoothing, real({.min = 0, .max = 1, .below_max = true}),
           "part of the target that is spread over all classes; cross_entropy only");
    const auto alpha = optional_with("null", real({.min = 0, .max = 100, .above_min = true}));
    s->add("mixup", &TrainSpec::mixup, alpha,
           "alpha of the Beta distribution with which two samples and their targets are mixed; null: off");
    s->add("cutmix", &TrainSpec::cutmix, alpha,
           "the same, with a rectangle of the other sample; with both, one of them at random");
    s->add_section("optimizer", &TrainSpec::optimizer, optimizer_section(), "the optimizer", {.required = true});
    s->add_section("schedule", &TrainSpec::schedule, schedule_section(), "the learning rate over the run");
    s->add("precision", &TrainSpec::precision, choice("precision", {"auto", "fp32", "bf16", "fp16"}),
           "of forward and backward; weights are always fp32; fp16 scales the loss",
           {.continuity = Continuity::kAutoMatchesAll});
    s->add("clip_norm", &TrainSpec::clip_norm, optional_with("null", real({.min = 0, .above_min = true})),
           "largest global norm of the gradient; null: no clipping");
    s->add("clip_value", &TrainSpec::clip_value, optional_with("null", real({.min = 0, .above_min = true})),
           "largest magnitude of an element of the gradient; null: no clipping");
    s->add("ema", &TrainSpec::ema,
           optional_with("null", real({.min = 0, .max = 1, .above_min = true, .below_max = true})),
           "decay of a running mean of the weights, which is evaluated and exported in their place; null: none");
    s->add("memory_format", &TrainSpec::memory_format, choice("memory format", {"auto", "contiguous", "channels_last"}),
           "of pictures inside the model", {.continuity = Continuity::kAutoMatchesAll});
    s->add("activation_checkpointing", &TrainSpec::activation_checkpointing, boolean(),
           "true: activations inside a block are computed again in the backward pass instead of being kept");
    s->add_optional_section("early_stop", &TrainSpec::early_stop, early_stop_section(),
                            "ends the run when the evaluation no longer becomes better; null: it runs its length");
    s->add_optional_section("loss_spike", &TrainSpec::loss_spike, loss_spike_section(),
                            "looks out for losses far above those before; null: does not");
    s->add("deterministic", &TrainSpec::deterministic, boolean(),
           "refuse kernels whose result can differ from run to run");
    s->prepare = settle_length;
    s->check = check_train;
    return s;
  }();
  return *section;
}

}  // namespace skytrain::recipe
