// skytrain/cli/train_view.h
//
// Shows a training run to people as it goes, and keeps what the records will want to know. All lines go to stderr (not
// with quiet, warnings excepted) and to the run's log.

#pragma once
#include <optional>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/progress.h"
#include "skytrain/elastic/training_run.h"

namespace skytrain::cli {

class TrainView final : public elastic::TrainingObserver {
 public:
  struct Options {
    std::string name;   // of the run
    std::string model;  // name of the model
    bool resuming = false;
    bool quiet = false;
    Progress::Options progress;
    Clock* clock = &Clock::real();
  };
  explicit TrainView(Options options);

  void on_hello(const proto::Hello& hello) override;
  void on_started(const proto::Started& started) override;
  void on_progress(const proto::ProgressReport& report) override;
  void on_note(const proto::Note& note) override;
  void on_checkpoint(const proto::CheckpointDone& checkpoint) override;
  void on_evaluation(const proto::EvaluationDone& evaluation) override;
  void on_stopping(std::optional<double> seconds) override;
  void on_restart(const Error& death, int64_t n, int64_t max_restarts) override;
  void finish();  // the run is over: leaves the bar as it is

  const std::string& torch_version() const { return torch_version_; }
  const std::optional<proto::Started>& started() const { return started_; }
  // When the first step of this attempt was done.
  std::optional<double> first_step_unix_seconds() const { return first_step_unix_seconds_; }
  uint64_t step() const { return step_; }
  uint64_t samples() const { return samples_; }

 private:
  std::string detail(const proto::ProgressReport& report) const;
  void reached(uint64_t step);

  Options options_;
  Progress progress_;
  std::string torch_version_;
  std::string detail_;  // beside the bar
  std::optional<proto::Started> started_;
  std::optional<double> first_step_unix_seconds_;
  std::optional<double> last_checkpoint_line_;
  uint64_t step_ = 0, samples_ = 0;
};

}  // namespace skytrain::cli
