#include "skytrain/recipe/sections.h"

#include "skytrain/base/run_name.h"

namespace skytrain::recipe {
namespace {

using Unit = Duration::Unit;

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

// A duration, or "auto", which is Duration::automatic().
Codec<Duration> or_auto(const Codec<Duration>& codec) {
  return {codec.type,
          [codec](const Value& value, Reader& reader, Duration* out) {
            if (value.kind != Value::Kind::kText || value.text != "auto") return codec.read(value, reader, out);
            *out = Duration::automatic();
            return true;
          },
          [codec](const Duration& duration) {
            return duration == Duration::automatic() ? OrderedJson("auto") : codec.write(duration);
          }};
}

const Section<CheckpointSpec>& checkpoint_section() {
  static const Section<CheckpointSpec>* const section = [] {
    auto* s = new Section<CheckpointSpec>;
    const Codec<Duration> every =
        duration({Unit::kSteps, Unit::kSamples, Unit::kEpochs, Unit::kPercent, Unit::kSeconds}, /*above_zero=*/true);
    s->add(
        "every", &CheckpointSpec::every,
        list_of("one or a list of amounts in steps, samples, epochs, %, s, min, h, d, or auto", 0, 16, true,
                or_auto(every)),
        "whichever comes first; auto: as often as loses least time, from what saving costs and from mtbf; []: at the "
        "end and when interrupted only");
    s->add("mtbf", &CheckpointSpec::mtbf, duration({Unit::kSeconds}, /*above_zero=*/true),
           "mean time between failures of the machines, for auto; the default is that of a spot machine");
    s->add("keep", &CheckpointSpec::keep, integer({1, 1'000'000}), "how many of the newest to keep");
    s->add("keep_every", &CheckpointSpec::keep_every,
           optional_with("null", duration({Unit::kSteps, Unit::kSamples, Unit::kEpochs, Unit::kPercent},
                                          /*above_zero=*/true)),
           "checkpoints taken so often are kept for good; null: none is");
    s->add("best", &CheckpointSpec::best, optional_with("null", choice("metric", {"loss", "top1"})),
           "the checkpoints of the evaluations that are best in it are kept too; null: they are not");
    s->add("keep_best", &CheckpointSpec::keep_best, integer({1, 1'000'000}), "how many of the best to keep");
    return s;
  }();
  return *section;
}

const Section<ElasticSpec>& elastic_section() {
  static const Section<ElasticSpec>* const section = [] {
    auto* s = new Section<ElasticSpec>;
    s->add(
        "grace", &ElasticSpec::grace, duration({Unit::kSeconds}, /*above_zero=*/true),
        "time from SIGTERM or SIGUSR1, which announce the end of the machine, to that end: saving fits into it or is "
        "given up before");
    s->add("max_restarts", &ElasticSpec::max_restarts, integer({0, 1'000'000}),
           "how often a worker that died is started again, before the run ends");
    return s;
  }();
  return *section;
}

void check_recipe(const Recipe& recipe, const Value& value, Reader& reader) {
  if (!recipe.model.init_except.empty() && !recipe.model.init) {
    const Reader::Scope scope(reader, "model.init_except");
    reader.problem(value.find("model")->find("init_except")->place, "is for model.init, which is not given",
                   "remove it, or name a file of weights");
  }
  if (recipe.model.classes == 1 && recipe.train.loss == "cross_entropy") {
    const Reader::Scope scope(reader, "model.classes");
    reader.problem(value.find("model")->find("classes")->place,
                   "is 1, and cross_entropy tells at least 2 classes apart",
                   "for one value to predict set train.loss to mse or bce");
  }
  const auto needs_evaluation = [&](const char* path, const Value* at, const std::string& what) {
    if (recipe.data.eval) return;
    const Reader::Scope scope(reader, path);
    reader.problem(at->place, what + " follows the evaluation, and there is no data.eval",
                   "add data.eval, or remove it");
  };
  const Value* const train = value.find("train");
  if (recipe.train.schedule.name == "plateau")
    needs_evaluation("train.schedule.name", train->find("schedule")->find("name"), "plateau");
  if (recipe.train.early_stop) needs_evaluation("train.early_stop", train->find("early_stop"), "early stopping");
  if (recipe.checkpoint.keep_best != 1 && !recipe.checkpoint.best) {
    const Reader::Scope scope(reader, "checkpoint.keep_best");
    reader.problem(value.find("checkpoint")->find("keep_best")->place, "is for checkpoint.best, which is not given",
                   "set checkpoint.best to loss or top1, or remove it");
  }
  if (recipe.checkpoint.best) {
    const Value* const best = value.find("checkpoint")->find("best");
    needs_evaluation("checkpoint.best", best, "the best checkpoint");
    if (recipe.train.early_stop && recipe.train.early_stop->metric != *recipe.checkpoint.best) {
      const Reader::Scope scope(reader, "checkpoint.best");
      reader.problem(
          best->place,
          "is " + *recipe.checkpoint.best + ", and train.early_stop.metric is " + recipe.train.early_stop->metric,
          "a run follows one metric");
    }
  }
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
    s->add_section("elastic", &Recipe::elastic, elastic_section(), "the loss of machines and workers",
                   {.continuity = Continuity::kMayChange});
    s->add("devices", &Recipe::devices, optional_with("auto", integer({1, 256})),
           "replicas, on a CPU one per core; auto: as many as pay", {.continuity = Continuity::kMayChange});
    s->add("memory_budget", &Recipe::memory_budget, optional_with("auto", bytes()),
           "what tensors may take; where a step needs more, its micro-batches are halved. auto: nine tenths of what is "
           "free at the start",
           {.continuity = Continuity::kMayChange});
    s->check = check_recipe;
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
