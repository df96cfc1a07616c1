#include "skytrain/recipe/sections.h"

#include <cmath>

#include "skytrain/base/run_name.h"
#include "skytrain/recipe/transforms.h"

namespace skytrain::recipe {
namespace {

using Unit = Duration::Unit;

// Far beyond what anyone trains, and small enough that products of them fit into 64 bits and single ones into a double.
constexpr int64_t kMaxCount = 1'000'000'000'000;  // of steps, of samples
constexpr double kMaxEpochs = 1e6;
constexpr int64_t kMaxRunSamples = (int64_t{1} << 62) - 1;

// The reference does not burden its readers with a bound that only a slip of the pen meets; the refusal names it.
template <class T>
Codec<T> described_as(const char* type, Codec<T> codec) {
  codec.type = type;
  return codec;
}

const Section<ModelSpec>& model_section() {
  static const Section<ModelSpec>* const section = [] {
    auto* s = new Section<ModelSpec>;
    s->selector = &ModelSpec::name;
    s->add("name", &ModelSpec::name, choice("model", {"simplecnn", "mlp", "convnet"}), "the architecture",
           {.required = true});
    s->add("classes", &ModelSpec::classes, integer({2, 1'000'000}), "number of classes of the data set");
    s->add("hidden", &ModelSpec::hidden, list_of("list of integers, 1 to 65,536", 1, 64, false, integer({1, 65536})),
           "width of each hidden layer", {.only_for = {"mlp"}});
    s->add("width", &ModelSpec::width, integer({4, 1024}), "channels of the first block", {.only_for = {"convnet"}});
    return s;
  }();
  return *section;
}

const Section<DatasetSpec>& dataset_section() {
  static const Section<DatasetSpec>* const section = [] {
    auto* s = new Section<DatasetSpec>;
    s->selector = &DatasetSpec::format;
    s->add("format", &DatasetSpec::format, choice("format", {"idx", "synthetic"}),
           "idx: the files of MNIST and its relatives; synthetic: made up from the seed, for trying things out",
           {.required = true});
    s->add("path", &DatasetSpec::path, path(), "folder of the files, against the recipe's own folder",
           {.required = true, .only_for = {"idx"}, .continuity = Continuity::kMayChange});
    s->add("split", &DatasetSpec::split, choice("split", {"train", "test"}), "which pair of files of the folder",
           {.required = true, .only_for = {"idx"}});
    s->add("samples", &DatasetSpec::samples, described_as("integer, 1 or more", unsigned_integer({1, kMaxCount})),
           "how many samples", {.only_for = {"synthetic"}});
    s->add("channels", &DatasetSpec::channels, integer({1, 4096}), "channels of a sample", {.only_for = {"synthetic"}});
    s->add("height", &DatasetSpec::height, integer({1, 4096}), "pixels", {.only_for = {"synthetic"}});
    s->add("width", &DatasetSpec::width, integer({1, 4096}), "pixels", {.only_for = {"synthetic"}});
    return s;
  }();
  return *section;
}

const Section<DataSpec>& data_section() {
  static const Section<DataSpec>* const section = [] {
    auto* s = new Section<DataSpec>;
    s->add_section("train", &DataSpec::train, dataset_section(), "the samples to train on", {.required = true});
    s->add_optional_section("eval", &DataSpec::eval, dataset_section(),
                            "the samples to evaluate on; null: no evaluation");
    add_transforms(*s);
    return s;
  }();
  return *section;
}

const Section<OptimizerSpec>& optimizer_section() {
  static const Section<OptimizerSpec>* const section = [] {
    auto* s = new Section<OptimizerSpec>;
    s->selector = &OptimizerSpec::name;
    s->add("name", &OptimizerSpec::name, choice("optimizer", {"sgd", "adam"}), "as torch.optim.SGD and Adam",
           {.required = true});
    s->add("lr", &OptimizerSpec::lr, real({.min = 0, .above_min = true}), "learning rate at its highest",
           {.required = true});
    s->add("momentum", &OptimizerSpec::momentum, real({.min = 0, .max = 1, .below_max = true}), "momentum",
           {.only_for = {"sgd"}});
    s->add("nesterov", &OptimizerSpec::nesterov, boolean(), "Nesterov's momentum", {.only_for = {"sgd"}});
    s->add_translated<std::vector<double>>(
        "betas", list_of("list of 2 numbers, >= 0 and < 1", 2, 2, false, real({.min = 0, .max = 1, .below_max = true})),
        [](const OptimizerSpec& o) {
          return std::vector<double>{o.beta1, o.beta2};
        },
        [](OptimizerSpec* o, const std::vector<double>& betas) {
          o->beta1 = betas[0];
          o->beta2 = betas[1];
        },
        "decay of the running means of the gradient and of its square", {.only_for = {"adam"}});
    s->add("eps", &OptimizerSpec::eps, real({.min = 0, .above_min = true}), "added to the denominator",
           {.only_for = {"adam"}});
    s->add("weight_decay", &OptimizerSpec::weight_decay, real({.min = 0}),
           "times the weights, added to the gradient (L2)");
    s->check = [](const OptimizerSpec& o, const Value& value, Reader& reader) {
      if (o.nesterov && o.momentum == 0) {
        const Reader::Scope scope(reader, "nesterov");
        reader.problem(value.find("nesterov")->place, "needs a momentum above 0",
                       "set momentum: 0.9, or nesterov: false");
      }
    };
    return s;
  }();
  return *section;
}

const Section<ScheduleSpec>& schedule_section() {
  static const Section<ScheduleSpec>* const section = [] {
    auto* s = new Section<ScheduleSpec>;
    s->selector = &ScheduleSpec::name;
    s->add("name", &ScheduleSpec::name, choice("schedule", {"constant", "cosine"}),
           "how the learning rate goes on after the warm-up");
    s->add("warmup", &ScheduleSpec::warmup,
           duration({Unit::kSteps, Unit::kSamples, Unit::kEpochs, Unit::kPercent}, /*above_zero=*/false),
           "the learning rate rises linearly over this part of the run; longer than the run: the ramp is cut");
    s->add("min_lr", &ScheduleSpec::min_lr, real({.min = 0}), "where the cosine ends, at most lr",
           {.only_for = {"cosine"}});
    return s;
  }();
  return *section;
}

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
      static_cast<int64_t>(train.length.value) > kMaxRunSamples / train.batch) {
    const Reader::Scope scope(reader, "steps");
    reader.problem(steps->place,
                   str(static_cast<int64_t>(train.length.value), " steps of ", train.batch,
                       " samples are more samples than can be counted"),
                   "lower steps or batch");
  }
  if (train.slot && *train.slot > train.batch) {
    const Reader::Scope scope(reader, "slot");
    reader.problem(value.find("slot")->place, str("is ", *train.slot, ", more than the batch of ", train.batch),
                   "a slot is a part of the batch: lower it, or set auto");
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

const Section<TrainSpec>& train_section() {
  static const Section<TrainSpec>* const section = [] {
    auto* s = new Section<TrainSpec>;
    add_length(*s);
    s->add("batch", &TrainSpec::batch, integer({1, 1'000'000'000}), "samples per optimizer step over all devices",
           {.required = true});
    s->add("slot", &TrainSpec::slot, optional_with("auto", integer({1, 1'000'000'000})),
           "samples per micro-batch, at most batch; results depend on it a little, on the number of devices by "
           "rounding only",
           {.continuity = Continuity::kAutoMatchesAll});
    s->add("loss", &TrainSpec::loss, choice("loss", {"cross_entropy"}), "what is minimised");
    s->add_section("optimizer", &TrainSpec::optimizer, optimizer_section(), "the optimizer", {.required = true});
    s->add_section("schedule", &TrainSpec::schedule, schedule_section(), "the learning rate over the run");
    s->add("precision", &TrainSpec::precision, choice("precision", {"auto", "fp32", "bf16"}),
           "of forward and backward; weights are always fp32", {.continuity = Continuity::kAutoMatchesAll});
    s->add("clip_norm", &TrainSpec::clip_norm, optional_with("null", real({.min = 0, .above_min = true})),
           "largest global norm of the gradient; null: no clipping");
    s->add("deterministic", &TrainSpec::deterministic, boolean(),
           "refuse kernels whose result can differ from run to run");
    s->prepare = settle_length;
    s->check = check_train;
    return s;
  }();
  return *section;
}

const Section<EvalSpec>& eval_section() {
  static const Section<EvalSpec>* const section = [] {
    auto* s = new Section<EvalSpec>;
    s->add("batch", &EvalSpec::batch, integer({1, 1'000'000'000}),
           "samples per forward pass; does not change the result beyond rounding");
    s->add("every", &EvalSpec::every,
           duration({Unit::kSteps, Unit::kSamples, Unit::kEpochs, Unit::kPercent}, /*above_zero=*/true),
           "how often to evaluate; the end of the run always is");
    return s;
  }();
  return *section;
}

const Section<CheckpointSpec>& checkpoint_section() {
  static const Section<CheckpointSpec>* const section = [] {
    auto* s = new Section<CheckpointSpec>;
    const Codec<Duration> every =
        duration({Unit::kSteps, Unit::kSamples, Unit::kEpochs, Unit::kPercent, Unit::kSeconds}, /*above_zero=*/true);
    s->add("every", &CheckpointSpec::every,
           list_of("one or a list of amounts in steps, samples, epochs, %, s, min, h, d", 0, 16, true, every),
           "whichever comes first; []: at the end and when interrupted only");
    s->add("keep", &CheckpointSpec::keep, integer({1, 1'000'000}), "how many of the newest to keep");
    return s;
  }();
  return *section;
}

}  // namespace

const Section<Recipe>& recipe_section() {
  static const Section<Recipe>* const section = [] {
    auto* s = new Section<Recipe>;
    s->add("version", &Recipe::version, integer({1, 1}), "of the recipe's format", {.required = true});
    s->add("name", &Recipe::name, text("letters, digits and . _ - + =, up to 100", refuse_run_name),
           "of the run; its folder is runs/NAME/", {.required = true, .continuity = Continuity::kMayChange});
    s->add("seed", &Recipe::seed, unsigned_integer({.min = 0}),
           "initial weights, order of the data and every other random choice follow from it");
    s->add_section("model", &Recipe::model, model_section(), "what is trained", {.required = true});
    s->add_section("data", &Recipe::data, data_section(), "what it is trained on", {.required = true});
    s->add_section("train", &Recipe::train, train_section(), "how it is trained", {.required = true});
    s->add_section("eval", &Recipe::eval, eval_section(), "evaluation", {.continuity = Continuity::kMayChange});
    s->add_section("checkpoint", &Recipe::checkpoint, checkpoint_section(), "checkpoints",
                   {.continuity = Continuity::kMayChange});
    s->add("devices", &Recipe::devices, optional_with("auto", integer({1, 256})),
           "replicas, on a CPU one per core; auto: as many as pay", {.continuity = Continuity::kMayChange});
    return s;
  }();
  return *section;
}

std::string where_key_belongs(const std::string& name) {
  std::vector<std::string> paths;
  recipe_section().document("", [&](const KeyDoc& doc) {
    if (doc.path.ends_with("." + name)) paths.push_back(doc.path);
  });
  return join(paths, " or ");
}

}  // namespace skytrain::recipe
