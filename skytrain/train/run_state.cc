#include "skytrain/train/run_state.h"

#include "skytrain/base/error.h"

namespace skytrain::train {
namespace {

TimeSplit time_from_json(const Json& json) {
  return {json.at("data_s"), json.at("forward_s"), json.at("backward_s"), json.at("optimizer_s"), json.at("other_s")};
}

}  // namespace

OrderedJson to_json(const TimeSplit& time) {
  return {{"data_s", time.data},
          {"forward_s", time.forward},
          {"backward_s", time.backward},
          {"optimizer_s", time.optimizer},
          {"other_s", time.other}};
}

OrderedJson to_json(const Evaluation& evaluation) {
  return {{"loss", evaluation.loss},
          {"top1", evaluation.top1},
          {"samples", evaluation.samples},
          {"seconds", evaluation.seconds}};
}

Json RunState::to_json() const {
  Json json = {{"log_loss_sum", log_loss_sum},
               {"log_samples", log_samples},
               {"log_time", train::to_json(log_time)},
               {"time", train::to_json(time)},
               {"evaluation_seconds", evaluation_seconds},
               {"checkpoint_seconds", checkpoint_seconds},
               {"last_loss", last_loss},
               {"evaluation_pending", evaluation_pending}};
  if (evaluated) {
    json["evaluation"] = train::to_json(evaluation);
    json["evaluation"]["step"] = evaluation.step;
  }
  return json;
}

RunState RunState::from_json(const Json& json, uint64_t step, const std::string& where) {
  try {
    RunState state;
    state.step = step;
    state.log_loss_sum = json.at("log_loss_sum");
    state.log_samples = json.at("log_samples");
    state.log_time = time_from_json(json.at("log_time"));
    state.time = time_from_json(json.at("time"));
    state.evaluation_seconds = json.at("evaluation_seconds");
    state.checkpoint_seconds = json.at("checkpoint_seconds");
    state.last_loss = json.at("last_loss");
    state.evaluation_pending = json.at("evaluation_pending");
    if (json.contains("evaluation")) {
      const Json& evaluation = json.at("evaluation");
      state.evaluated = true;
      state.evaluation = {evaluation.at("step"), evaluation.at("samples"), evaluation.at("loss"), evaluation.at("top1"),
                          evaluation.at("seconds")};
    }
    return state;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kData, where, std::string("state of the run: ") + error.what());
  }
}

}  // namespace skytrain::train
