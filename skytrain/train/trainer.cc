#include "skytrain/train/trainer.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <future>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/order.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/train/auto_decisions.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/evaluator.h"
#include "skytrain/train/run_log.h"
#include "skytrain/train/run_plan.h"
#include "skytrain/train/saved_state.h"
#include "skytrain/train/schedule.h"

namespace skytrain::train {
namespace {

constexpr double kProgressSeconds = 0.1;

std::string finite_advice(const recipe::Recipe& recipe) {
  std::string advice = str("lower train.optimizer.lr (now ", shortest_double(recipe.train.optimizer.lr), ")");
  if (recipe.train.schedule.warmup.value == 0) advice += ", add train.schedule.warmup";
  if (!recipe.train.clip_norm) advice += ", or set train.clip_norm";
  return advice;
}

class Run {
 public:
  Run(FileSystem& fs, Clock& clock, const TrainOptions& options, TrainObserver& observer,
      const std::function<bool()>& stop)
      : fs_(fs), clock_(clock), options_(options), recipe_(options.recipe), observer_(observer), stop_(stop) {}

  TrainOutcome run() {
    open();
    if (state_.evaluation_pending && !evaluate()) return outcome(/*interrupted=*/true);
    while (state_.step < plan_->total_steps()) {
      if (stop_()) return interrupt();
      step();
      if (plan_->evaluation_due(state_.step)) {
        state_.evaluation_pending = evaluation_data_ != nullptr;
        if (!evaluate()) return interrupt();
      }
      if (plan_->checkpoint_due(state_.step, clock_.monotonic_seconds() - last_save_)) save();
    }
    return outcome(/*interrupted=*/false);
  }

 private:
  uint64_t samples() const { return plan_->slots().samples_before(state_.step); }

  void open() {
    std::future<std::unique_ptr<data::Dataset>> evaluation_data;
    if (recipe_.data.eval)
      evaluation_data = std::async(std::launch::async, [this] {
        return data::open_dataset(fs_, *recipe_.data.eval, recipe_.model.classes, recipe_.seed, /*eval=*/true);
      });
    train_data_ = data::open_dataset(fs_, recipe_.data.train, recipe_.model.classes, recipe_.seed, /*eval=*/false);
    const data::DatasetInfo& info = train_data_->info();
    input_ = {info.channels, info.height, info.width};

    RunStarted started;
    started.parameters = model::count_parameters(
        *model::build_model(recipe_.model, input_, at::detail::createCPUGenerator(recipe_.seed)));
    const Machine machine = this_machine();
    started.decisions = decide(recipe_, started.parameters, machine);
    started.recipe = recipe_;
    plan_.emplace(recipe_, info.samples);
    schedule_.emplace(recipe_.train.schedule, recipe_.train.optimizer.lr, uint64_t(recipe_.train.batch), info.samples,
                      plan_->total_samples());
    filler_.emplace(*train_data_, recipe_.data.transforms, recipe_.seed, /*training=*/true);
    if (recipe_.train.deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);

    Engine::Options engine;
    engine.replicas = int(*recipe_.devices);
    engine.threads_per_replica = std::max(1, machine.cores / engine.replicas);
    engine.precision = recipe_.train.precision == "bf16" ? Precision::kBf16 : Precision::kFp32;
    engine.clip_norm = recipe_.train.clip_norm;
    engine.input = input_;
    engine_.emplace(recipe_.model, recipe_.train.optimizer, recipe_.seed, engine);

    // Bad evaluation data is told now, not at the end of the first epoch.
    if (evaluation_data.valid()) open_evaluation(evaluation_data.get());

    saved_.emplace(fs_, clock_, options_.run_directory + "/checkpoints", recipe::fingerprint(options_.recipe));
    saved_->set_data_fingerprint(info.fingerprint);
    if (options_.resume) {
      std::vector<std::string> notes;
      if (std::optional<RunState> found = saved_->restore(*engine_, &notes)) state_ = *found;
      for (const std::string& line : notes) observer_.note(/*warning=*/true, line);
    }
    drop_stale_evaluation();
    log_.emplace(fs_, clock_, options_.run_directory, state_.step, info.samples, state_.evaluation_pending);
    log_every_ = options_.log_every > 0 ? options_.log_every : plan_->default_log_every();
    last_save_ = clock_.monotonic_seconds();

    started.resume_step = state_.step;
    started.resume_samples = samples();
    started.total_steps = plan_->total_steps();
    started.total_samples = plan_->total_samples();
    started.samples_per_epoch = info.samples;
    observer_.started(started);
    if (schedule_->warmup_samples() > plan_->total_samples())
      observer_.note(/*warning=*/true,
                     str("train.schedule.warmup is longer than the run: the learning rate rises to the "
                         "end and stays below train.optimizer.lr"));
  }

  void step() {
    const data::Slots& slots = plan_->slots();
    const double begin = clock_.monotonic_seconds();
    const double lr = schedule_->rate(samples());
    const StepResult result = engine_->step(
        slots, state_.step, lr, [this](const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
          thread_local std::vector<uint64_t> indices;
          indices.resize(slot.count);
          const data::Order order(plan_->samples_per_epoch(), recipe_.seed, slot.epoch);
          for (uint64_t i = 0; i < slot.count; ++i) indices[i] = order[slot.begin + i];
          filler_->fill(slot.epoch, indices, images.mutable_data_ptr<float>(), labels.mutable_data_ptr<int64_t>());
        });
    if (!result.finite) diverged(str("the loss or a gradient became NaN or infinite in step ", state_.step + 1));

    ++state_.step;
    state_.log_loss_sum += result.loss_sum;
    state_.log_samples += result.samples;
    state_.log_time += result.time;
    state_.time += result.time;
    const bool first = !std::exchange(stepped_, true);
    const double now = clock_.monotonic_seconds();
    if (first || state_.step == plan_->total_steps() || now - last_progress_ >= kProgressSeconds) {
      const double rate = progress_seconds_ > 0 ? double(progress_samples_) / progress_seconds_ : 0;
      observer_.progress({state_.step, samples(), double(samples()) / double(plan_->samples_per_epoch()),
                          result.loss_sum / double(result.samples), lr, rate, clock_.unix_seconds(), first});
      last_progress_ = now;
      progress_samples_ = 0;
      progress_seconds_ = 0;
    }
    if (state_.step % log_every_ == 0 || state_.step == plan_->total_steps()) log_->write_step(state_, samples(), lr);
    const double end = clock_.monotonic_seconds();
    progress_samples_ += result.samples;
    progress_seconds_ += end - begin;
    const TimeSplit book_keeping{.other = std::max(0.0, end - begin - result.time.total())};
    state_.log_time += book_keeping;
    state_.time += book_keeping;
  }

  // False: stopped on request before it was done.
  bool evaluate() {
    if (!evaluation_data_) {
      state_.evaluation_pending = false;
      return true;
    }
    const double begin = clock_.monotonic_seconds();
    std::optional<EvaluationDetails> details = train::evaluate(*engine_, *evaluation_data_, *evaluation_filler_,
                                                               recipe_.model.classes, recipe_.eval.batch, stop_);
    const double seconds = clock_.monotonic_seconds() - begin;
    state_.evaluation_seconds += seconds;
    if (!details) return false;
    if (!std::isfinite(details->result.loss))
      diverged(str("the evaluation loss is NaN or infinite after step ", state_.step));
    details->result.step = state_.step;
    details->result.seconds = seconds;
    state_.evaluation = details->result;
    state_.evaluated = true;
    state_.evaluation_pending = false;
    log_->write_evaluation(state_.evaluation, samples());
    write_file_atomically(fs_, options_.run_directory + "/evaluation.json",
                          train::to_json(*details, *evaluation_data_).dump() + "\n");
    observer_.evaluated(state_.evaluation);
    return true;
  }

  // What an earlier attempt evaluated beyond the state that this one goes on from.
  void drop_stale_evaluation() {
    const std::string path = options_.run_directory + "/evaluation.json";
    if (!fs_.exists(path)) return;
    if (state_.evaluated) {
      try {
        if (parse_json(fs_.read_file(path), path).at("step") == state_.evaluation.step) return;
      } catch (const std::exception&) {  // not what this run wrote
      }
    }
    fs_.remove_file(path);
  }

  void open_evaluation(std::unique_ptr<data::Dataset> dataset) {
    evaluation_data_ = std::move(dataset);
    const data::DatasetInfo& info = evaluation_data_->info();
    if (info.channels != input_.channels || info.height != input_.height || info.width != input_.width)
      throw Error(ErrorKind::kData, recipe_.data.eval->path,
                  str("evaluation pictures are ", info.channels, "x", info.height, "x", info.width, ", training ones ",
                      input_.channels, "x", input_.height, "x", input_.width));
    evaluation_filler_.emplace(*evaluation_data_, recipe_.data.transforms, recipe_.seed, /*training=*/false);
  }

  void save() {
    if (state_.step == 0 || saved_->newest_step() == state_.step) return;
    const double begin = clock_.monotonic_seconds();
    log_->sync();  // no checkpoint before its metrics are on the disk: a resume must not leave a gap
    if (!SavedState::finite(*engine_)) diverged(str("a weight became NaN or infinite in step ", state_.step));
    std::vector<std::string> notes;
    const std::string path = saved_->save(*engine_, state_, samples(), recipe_.checkpoint.keep, &notes);
    for (const std::string& line : notes) observer_.note(/*warning=*/true, line);
    last_save_ = clock_.monotonic_seconds();
    state_.checkpoint_seconds += last_save_ - begin;
    observer_.checkpoint_saved(state_.step, path, last_save_ - begin);
  }

  TrainOutcome interrupt() {
    save();
    return outcome(/*interrupted=*/true);
  }

  [[noreturn]] void diverged(const std::string& what) {
    log_->sync();
    std::string kept = "no checkpoint had been saved yet";
    if (saved_->newest_step() < state_.step && state_.step > 0 && SavedState::finite(*engine_)) {
      // The state before the failing step is whole; without pruning, so that older ones stay to go back to.
      saved_->save(*engine_, state_, samples(), /*keep=*/0, nullptr);
    }
    if (saved_->newest_step() > 0) kept = str("the last good state is kept: ", saved_->newest_path());
    throw Error(ErrorKind::kDiverged, "", what, kept + "; " + finite_advice(recipe_));
  }

  TrainOutcome outcome(bool interrupted) {
    log_->sync();
    TrainOutcome outcome;
    outcome.interrupted = interrupted;
    outcome.state = state_;
    outcome.samples = samples();
    outcome.checkpoint = saved_->newest_path();
    const double seconds = state_.time.total();
    OrderedJson& summary = outcome.summary;
    summary = {{"status", interrupted ? "interrupted" : "complete"},
               {"steps", state_.step},
               {"samples", outcome.samples},
               {"seconds", seconds},
               {"samples_per_second", seconds > 0 ? double(outcome.samples) / seconds : 0.0},
               {"peak_rss_bytes", peak_rss_bytes()}};
    if (state_.evaluated) summary["eval"] = to_json(state_.evaluation);
    summary["train_loss"] = state_.last_loss;
    summary["parameters"] = model::count_parameters(engine_->model());
    summary["devices"] = *recipe_.devices;
    summary["slot"] = *recipe_.train.slot;
    summary["precision"] = recipe_.train.precision;
    summary["time"] = to_json(state_.time);
    summary["time"]["evaluation_s"] = state_.evaluation_seconds;
    summary["time"]["checkpoint_s"] = state_.checkpoint_seconds;
    summary["data_fingerprint"]["train"] = train_data_->info().fingerprint;
    if (evaluation_data_) summary["data_fingerprint"]["eval"] = evaluation_data_->info().fingerprint;
    summary["torch_version"] = TORCH_VERSION;
    return outcome;
  }

  FileSystem& fs_;
  Clock& clock_;
  const TrainOptions& options_;
  recipe::Recipe recipe_;  // options_.recipe with auto decided
  TrainObserver& observer_;
  const std::function<bool()>& stop_;

  std::unique_ptr<data::Dataset> train_data_, evaluation_data_;
  std::optional<data::BatchFiller> filler_, evaluation_filler_;
  model::InputShape input_;
  std::optional<RunPlan> plan_;
  std::optional<Schedule> schedule_;
  std::optional<Engine> engine_;
  std::optional<SavedState> saved_;
  std::optional<RunLog> log_;

  RunState state_;
  uint64_t log_every_ = 1;
  double last_save_ = 0, last_progress_ = 0;
  bool stepped_ = false;
  uint64_t progress_samples_ = 0;
  double progress_seconds_ = 0;
};

}  // namespace

TrainOutcome train(FileSystem& fs, Clock& clock, const TrainOptions& options, TrainObserver& observer,
                   const std::function<bool()>& stop) {
  return Run(fs, clock, options, observer, stop).run();
}

}  // namespace skytrain::train
