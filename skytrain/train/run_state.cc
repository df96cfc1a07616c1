#include "skytrain/train/run_state.h"

#include "skytrain/base/error.h"
#include "skytrain/data/bad_samples.h"

namespace skytrain::train {
namespace {

TimeSplit time_from_json(const Json& json) {
  return {json.at("data_s"), json.at("forward_s"), json.at("backward_s"), json.at("optimizer_s"), json.at("other_s")};
}

Json with_step(const Evaluation& evaluation) {
  Json json = to_json(evaluation);
  json["step"] = evaluation.step;
  json["metrics"] = Json::array();  // in their order, which an object would lose
  for (const auto& [name, value] : evaluation.metrics) json["metrics"].push_back({name, value});
  return json;
}

Evaluation evaluation_from_json(const Json& json) {
  Evaluation evaluation;
  evaluation.step = json.at("step");
  evaluation.samples = json.at("samples");
  evaluation.loss = json.at("loss");
  evaluation.seconds = json.at("seconds");
  for (const Json& metric : json.at("metrics")) evaluation.metrics.emplace_back(metric.at(0), metric.at(1));
  return evaluation;
}

}  // namespace

std::optional<double> Evaluation::metric(const std::string& name) const {
  if (name == "loss") return loss;
  for (const auto& [own, value] : metrics)
    if (own == name) return value;
  return std::nullopt;
}

OrderedJson to_json(const TimeSplit& time) {
  return {{"data_s", time.data},
          {"forward_s", time.forward},
          {"backward_s", time.backward},
          {"optimizer_s", time.optimizer},
          {"other_s", time.other}};
}

OrderedJson to_json(const Evaluation& evaluation) {
  OrderedJson json = {{"loss", evaluation.loss}};
  for (const auto& [name, value] : evaluation.metrics) json[name] = value;
  json["samples"] = evaluation.samples;
  json["seconds"] = evaluation.seconds;
  return json;
}

Json RunState::to_json() const {
  Json json = {{"applied_steps", applied_steps},
               {"applied_samples", applied_samples},
               {"log_loss_sum", log_loss_sum},
               {"log_samples", log_samples},
               {"log_time", train::to_json(log_time)},
               {"time", train::to_json(time)},
               {"evaluation_seconds", evaluation_seconds},
               {"checkpoint_seconds", checkpoint_seconds},
               {"last_loss", last_loss},
               {"slot", slot},
               {"evaluation_pending", evaluation_pending},
               {"evaluations_without_better", evaluations_without_better},
               {"stopped_early", stopped_early},
               {"plateau", plateau},
               {"scaler", scaler},
               {"spike_detector", spike_detector}};
  if (!bad_samples.is_null()) json["bad_samples"] = bad_samples;
  if (evaluated) json["evaluation"] = with_step(evaluation);
  if (best) json["best"] = with_step(*best);
  if (!best_steps.empty()) json["best_steps"] = best_steps, json["best_metric"] = best_metric;
  if (early_stop_value) json["early_stop_value"] = *early_stop_value;
  return json;
}

RunState RunState::from_json(const Json& json, uint64_t step, const std::string& where) {
  try {
    RunState state;
    state.step = step;
    state.applied_steps = json.at("applied_steps");
    state.applied_samples = json.at("applied_samples");
    state.log_loss_sum = json.at("log_loss_sum");
    state.log_samples = json.at("log_samples");
    state.log_time = time_from_json(json.at("log_time"));
    state.time = time_from_json(json.at("time"));
    state.evaluation_seconds = json.at("evaluation_seconds");
    state.checkpoint_seconds = json.at("checkpoint_seconds");
    state.last_loss = json.at("last_loss");
    state.slot = json.at("slot");
    state.evaluation_pending = json.at("evaluation_pending");
    state.evaluations_without_better = json.at("evaluations_without_better");
    state.stopped_early = json.at("stopped_early");
    state.plateau = json.at("plateau");
    state.scaler = json.at("scaler");
    state.spike_detector = json.at("spike_detector");
    if (json.contains("bad_samples")) {
      state.bad_samples = json.at("bad_samples");
      for (const char* set : {"train", "eval"}) data::BadSamples(0).from_json(state.bad_samples.at(set));
    }
    if (json.contains("evaluation")) {
      state.evaluated = true;
      state.evaluation = evaluation_from_json(json.at("evaluation"));
    }
    if (json.contains("early_stop_value")) state.early_stop_value = json.at("early_stop_value").get<double>();
    if (json.contains("best")) state.best = evaluation_from_json(json.at("best"));
    if (json.contains("best_steps")) json.at("best_steps").get_to(state.best_steps);
    state.best_metric = json.value("best_metric", "");
    return state;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kData, where, std::string("state of the run: ") + error.what());
  }
}

}  // namespace skytrain::train
