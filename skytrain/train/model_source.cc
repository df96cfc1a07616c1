#include "skytrain/train/model_source.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/batch.h"
#include "skytrain/model/torchscript.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/data_description.h"
#include "skytrain/train/evaluator.h"
#include "skytrain/train/init_weights.h"
#include "skytrain/train/run_setup.h"
#include "skytrain/train/saved_state.h"

namespace skytrain::train {
namespace {

// An engine whose optimizer has no state: only what the model itself needs is held.
std::unique_ptr<Engine> build_engine(FileSystem& fs, const ModelSource& source, const model::InputShape& input,
                                     const TellNote& note) {
  const recipe::Recipe& recipe = source.recipe;
  const Machine machine = this_machine();
  tensor::set_memory_budget(memory_limit(recipe, machine));
  Engine::Options options = engine_options(recipe, machine, input);
  options.loss = Loss(options.loss.kind());
  if (!source.checkpoint.empty()) options.ema = recipe.train.ema;
  std::unique_ptr<model::Model> built =
      model::build_model(recipe.model, input, at::detail::createCPUGenerator(recipe.seed));
  if (source.checkpoint.empty()) {
    if (!recipe.model.init)
      throw Error(ErrorKind::kRecipe, "model.init", "there are no weights: neither a checkpoint nor a file is given",
                  "name a run, or a file of weights with --weights");
    for (const std::string& line : load_init_weights(fs, *recipe.model.init, recipe.model.init_except, *built))
      note(line);
  }
  recipe::OptimizerSpec plain;
  plain.name = "sgd";
  plain.lr = 1;
  auto engine = std::make_unique<Engine>(recipe.model, plain, recipe.seed, options, std::move(built));
  if (!source.checkpoint.empty()) load_engine_state(fs, source.checkpoint, *engine);
  return engine;
}

// As the checkpoint remembers them; older ones do not, and then the data themselves must be there.
data::DatasetInfo training_data(FileSystem& fs, const ModelSource& source) {
  if (!source.checkpoint.empty()) {
    const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, source.checkpoint);
    if (manifest.state.is_object() && manifest.state.contains("data"))
      return described_data(manifest.state["data"], source.checkpoint + "/manifest.json");
  }
  return data::open_dataset(fs, source.recipe.data.train, training_data_options(source.recipe))->info();
}

}  // namespace

std::optional<EvaluationOutcome> evaluate_model(FileSystem& fs, const ModelSource& source, const TellNote& note,
                                                const std::function<bool()>& stop) {
  const recipe::Recipe& recipe = source.recipe;
  if (!recipe.data.eval)
    throw Error(ErrorKind::kRecipe, "data.eval", "is not given: there is nothing to evaluate on",
                "add it to the recipe, or with --set 'data.eval={…}'");
  // Classes and features with names mean what they meant in training.
  const data::DatasetInfo trained_on = training_data(fs, source);
  std::unique_ptr<data::Dataset> dataset =
      data::open_dataset(fs, *recipe.data.eval, evaluation_data_options(recipe, trained_on));
  const EvaluationSet set(std::move(dataset), recipe, stop);
  const data::DatasetInfo& info = set.info();
  for (const std::string& line : info.notes) note(line);
  const std::unique_ptr<Engine> engine = build_engine(fs, source, {info.channels, info.height, info.width}, note);
  const double begin = Clock::real().monotonic_seconds();
  int64_t batch = recipe.eval.batch;
  std::optional<EvaluationDetails> details =
      evaluate_within_memory(*engine, set, recipe.model.classes, batch, stop, note);
  for (const std::string& line : set.bad_samples().take_new()) note(line + "; the sample is left out");
  if (!details) return std::nullopt;
  details->result.seconds = Clock::real().monotonic_seconds() - begin;
  if (!source.checkpoint.empty()) details->result.step = checkpoint::read_manifest(fs, source.checkpoint).step;
  OrderedJson json = to_json(*details, set.dataset());
  return EvaluationOutcome{std::move(*details), std::move(json), model::count_parameters(engine->model())};
}

void write_torchscript(FileSystem& fs, const ModelSource& source, const TellNote& note, const std::string& output) {
  const recipe::Recipe& recipe = source.recipe;
  const data::DatasetInfo info = training_data(fs, source);
  ModelSource single = source;
  single.recipe.devices = 1;
  const std::unique_ptr<Engine> engine = build_engine(fs, single, {info.channels, info.height, info.width}, note);
  engine->share_buffers();
  const Engine::AveragedWeights averaged(*engine);
  if (recipe.model.name == "torchscript") {
    model::save_torchscript(fs, engine->model(), output);
  } else {
    model::trace(fs, engine->model(), at::zeros({1, info.channels, info.height, info.width}, at::kFloat), output);
  }
}

}  // namespace skytrain::train
