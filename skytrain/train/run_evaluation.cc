#include "skytrain/train/run_evaluation.h"

#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

std::string evaluation_path(const std::string& run_directory) { return run_directory + "/evaluation.json"; }

}  // namespace

RunEvaluation::RunEvaluation(FileSystem& fs, Clock& clock, std::string run_directory,
                             std::unique_ptr<data::Dataset> dataset, const recipe::Recipe& recipe,
                             const model::InputShape& input, TrainObserver& observer, const std::function<bool()>& stop)
    : fs_(fs),
      clock_(clock),
      run_directory_(std::move(run_directory)),
      observer_(observer),
      outputs_(recipe.model.classes),
      batch_(recipe.eval.batch),
      set_(std::move(dataset), recipe, stop) {
  const data::DatasetInfo& info = set_.info();
  for (const std::string& note : info.notes) observer_.note(/*warning=*/false, note);
  if (info.channels != input.channels || info.height != input.height || info.width != input.width)
    throw Error(ErrorKind::kData, recipe.data.eval->path,
                str("evaluation samples are ", info.channels, "x", info.height, "x", info.width, ", training ones ",
                    input.channels, "x", input.height, "x", input.width));
}

std::optional<EvaluationDetails> RunEvaluation::run(Engine& engine, uint64_t step, const std::function<bool()>& stop,
                                                    double& seconds) {
  const double begin = clock_.monotonic_seconds();
  std::optional<EvaluationDetails> details =
      evaluate_within_memory(engine, set_, outputs_, batch_, stop,
                             [this](const std::string& line) { observer_.note(/*warning=*/true, line); });
  const double taken = clock_.monotonic_seconds() - begin;
  seconds += taken;
  note_bad_samples(set_.bad_samples(), observer_);
  if (!details) return std::nullopt;
  details->result.step = step;
  details->result.seconds = taken;
  return details;
}

void RunEvaluation::write(const EvaluationDetails& details) const {
  write_file_atomically(fs_, evaluation_path(run_directory_), train::to_json(details, set_.dataset()).dump() + "\n");
}

void drop_stale_evaluation(FileSystem& fs, const std::string& run_directory, const RunState& state) {
  const std::string path = evaluation_path(run_directory);
  if (!fs.exists(path)) return;
  if (state.evaluated) {
    try {
      if (parse_json(fs.read_file(path), path).at("step") == state.evaluation.step) return;
    } catch (const std::exception&) {  // not what this run wrote
    }
  }
  fs.remove_file(path);
}

void note_bad_samples(data::BadSamples& bad, TrainObserver& observer) {
  for (const std::string& line : bad.take_new()) observer.note(/*warning=*/true, line + "; the sample is left out");
}

}  // namespace skytrain::train
