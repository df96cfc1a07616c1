// skytrain/train/run_evaluation.h
//
// The evaluations of a run: the samples, and evaluation.json in the run's folder.

#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/model/model.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/evaluation_set.h"
#include "skytrain/train/evaluator.h"
#include "skytrain/train/trainer.h"

namespace skytrain::train {

class RunEvaluation {
 public:
  // dataset: of recipe.data.eval; input: of the model. stop: as of EvaluationSet. Throws Error(kData) when samples are
  // of another shape, and what EvaluationSet throws.
  RunEvaluation(FileSystem& fs, Clock& clock, std::string run_directory, std::unique_ptr<data::Dataset> dataset,
                const recipe::Recipe& recipe, const model::InputShape& input, TrainObserver& observer,
                const std::function<bool()>& stop);

  // With result.step and result.seconds. nullopt: stopped. seconds: grows by the time it took.
  std::optional<EvaluationDetails> run(Engine& engine, uint64_t step, const std::function<bool()>& stop,
                                       double& seconds);
  void write(const EvaluationDetails& details) const;
  const EvaluationSet& set() const { return set_; }

 private:
  FileSystem& fs_;
  Clock& clock_;
  const std::string run_directory_;
  TrainObserver& observer_;
  const int64_t outputs_;
  int64_t batch_;
  EvaluationSet set_;
};

// Removes the evaluation.json that an earlier attempt wrote beyond `state`, from which this one goes on.
void drop_stale_evaluation(FileSystem& fs, const std::string& run_directory, const RunState& state);

// Tells the observer of samples that were left out since the last call.
void note_bad_samples(data::BadSamples& bad, TrainObserver& observer);

}  // namespace skytrain::train
