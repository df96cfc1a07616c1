#include "skytrain/train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <future>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/model/flops.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/auto_decisions.h"
#include "skytrain/train/batch_check.h"
#include "skytrain/train/data_feed.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/evaluation_watch.h"
#include "skytrain/train/init_weights.h"
#include "skytrain/train/prefetcher.h"
#include "skytrain/train/progress_reporter.h"
#include "skytrain/train/run_checkpoints.h"
#include "skytrain/train/run_evaluation.h"
#include "skytrain/train/run_log.h"
#include "skytrain/train/run_plan.h"
#include "skytrain/train/run_setup.h"
#include "skytrain/train/run_summary.h"
#include "skytrain/train/saved_state.h"
#include "skytrain/train/schedule.h"
#include "skytrain/train/shape_check.h"
#include "skytrain/train/spike_response.h"
#include "skytrain/train/spike_watch.h"
#include "skytrain/train/stopped.h"

namespace skytrain::train {
namespace {

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
      : fs_(fs),
        clock_(clock),
        options_(options),
        recipe_(options.recipe),
        observer_(observer),
        stop_(stop),
        progress_(clock, observer) {}

  TrainOutcome run() {
    try {
      open();
    } catch (const Stopped&) {
      return stopped_before_it_began();
    }
    if (state_.evaluation_pending) {
      if (!evaluate()) return outcome(/*interrupted=*/true);
      log_->sync();  // before the checkpoint says that the evaluation is done, as a save does
      saved_->amend(state_);
    }
    while (state_.step < plan_->total_steps() && !state_.stopped_early) {
      if (stop_()) return interrupt();
      step();
      bool kept = false;
      if (plan_->evaluation_due(state_.step)) {
        state_.evaluation_pending = evaluation_.has_value();
        if (!evaluate(&kept)) return interrupt();
      }
      save_where_due(kept || state_.stopped_early);
    }
    return end(/*interrupted=*/false);
  }

 private:
  uint64_t samples() const { return plan_->slots().samples_before(state_.step); }

  void open() {
    train_data_ = data::open_dataset(fs_, recipe_.data.train, training_data_options(recipe_));
    const data::DatasetInfo& info = train_data_->info();
    std::future<std::unique_ptr<data::Dataset>> evaluation_data;  // read while the model is being built
    if (recipe_.data.eval)
      evaluation_data = std::async(std::launch::async, [this, &info] {
        return data::open_dataset(fs_, *recipe_.data.eval, evaluation_data_options(recipe_, info));
      });
    for (const std::string& note : info.notes) observer_.note(/*warning=*/false, note);
    check_target_values(recipe_, *train_data_);
    input_ = {info.channels, info.height, info.width};
    feed_.emplace(*train_data_, recipe_);
    feed_->divide(stop_);
    throw_if_stopped(stop_);
    watch_.emplace(recipe_, /*of_classes=*/info.values == 0);

    const Machine machine = this_machine();
    tensor::set_memory_budget(memory_limit(recipe_, machine));
    std::unique_ptr<model::Model> built =
        model::build_model(recipe_.model, input_, at::detail::createCPUGenerator(recipe_.seed));
    if (recipe_.model.init && !will_restore())
      for (const std::string& line : load_init_weights(fs_, *recipe_.model.init, recipe_.model.init_except, *built))
        observer_.note(/*warning=*/false, line);
    RunStarted started;
    started.parameters = model::count_parameters(*built);
    const Measurements measurements{
        .sample_flops = [&] { return model::count_flops(*built, input_); },
        .batch =
            [&](const recipe::Recipe& so_far) { return choose_batch(so_far, machine, *feed_, info, *built, stop_); },
        .precision =
            [&](const recipe::Recipe& so_far) {
              return measure_precision(so_far, machine, *feed_, info, *built, stop_);
            }};
    started.decisions = decide(recipe_, started.parameters, machine, measurements);
    started.recipe = recipe_;
    feed_->set_memory_format(memory_format_of(recipe_));
    if (*recipe_.train.slot == 1 && !built->buffers().empty())
      observer_.note(/*warning=*/true, "train.slot is 1: batch norm, where there is one, sees a sample at a time");
    make_plan();
    check_shapes(*built, recipe_, input_, feed_->shapes());
    schedule_.emplace(recipe_.train.schedule, recipe_.train.optimizer.lr, uint64_t(recipe_.train.batch), info.samples,
                      plan_->total_samples());
    if (recipe_.train.deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    engine_.emplace(recipe_.model, recipe_.train.optimizer, recipe_.seed, training_options(machine), std::move(built));

    // Bad evaluation data is told now, not at the end of the first epoch.
    if (evaluation_data.valid())
      evaluation_.emplace(fs_, clock_, options_.run_directory, evaluation_data.get(), recipe_, input_, observer_,
                          stop_);

    saved_.emplace(fs_, clock_, options_.run_directory + "/checkpoints", recipe::fingerprint(options_.recipe),
                   options_.memory);
    saved_->set_data(info);
    if (options_.deadline) saved_->set_deadline(options_.deadline);
    throw_if_stopped(stop_);
    if (options_.resume) restore();
    drop_stale_evaluation(fs_, options_.run_directory, state_);
    log_.emplace(fs_, clock_, options_.run_directory, state_.step, info.samples, saved_->generation(),
                 state_.evaluation_pending);
    if (recipe_.train.loss_spike)
      spikes_.emplace(fs_, clock_, options_.run_directory, *recipe_.train.loss_spike, state_);
    log_every_ = options_.log_every > 0 ? options_.log_every : plan_->default_log_every();
    checkpoints_.emplace(
        clock_, recipe_.checkpoint, *saved_, *engine_, *log_, observer_, [this] { note_states(); }, stop_,
        options_.deadline, state_);
    if (spikes_) response_.emplace(*spikes_, *recipe_.train.loss_spike, *saved_, *checkpoints_, *engine_, observer_);
    engine_->set_on_failure([this] {
      if (prefetcher_) prefetcher_->cancel();
    });
    start_prefetcher();

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

  // With a checkpoint there, restore() loads one or throws: initial weights would be read for nothing.
  bool will_restore() const {
    if (!options_.resume) return false;
    const auto found = checkpoint::list_checkpoints(fs_, options_.run_directory + "/checkpoints", /*hash=*/false);
    return std::any_of(found.begin(), found.end(), [](const checkpoint::Candidate& c) { return c.valid; });
  }

  Engine::Options training_options(const Machine& machine) const {
    Engine::Options options = engine_options(recipe_, machine, input_);
    options.clip_norm = recipe_.train.clip_norm;
    options.clip_value = recipe_.train.clip_value;
    options.ema = recipe_.train.ema;
    options.target_values = feed_->target_values();
    options.image_format = feed_->image_format();
    options.activation_checkpointing = recipe_.train.activation_checkpointing;
    return options;
  }

  void restore() {
    std::vector<std::string> notes;
    if (std::optional<RunState> found = saved_->restore(*engine_, &notes)) state_ = *found;
    for (const std::string& line : notes) observer_.note(/*warning=*/true, line);
    if (state_.slot > 0) use_slot(state_.slot);
    if (const uint64_t before = saved_->restored_samples(); state_.step > 0 && before != samples())
      throw Error(ErrorKind::kRecipe, "train.batch",
                  str("step ", state_.step, " of the run had used ", before, " samples, and it would be ", samples(),
                      " with a batch of ", recipe_.train.batch),
                  "set train.batch to what it was, or start again with --resume never");
    watch_->restored(state_);
    restore_bad_samples();
    if (state_.stopped_early)
      observer_.note(/*warning=*/true, str("this run stopped early after step ", state_.step,
                                           ", which holds for a longer one too; start another with --resume never"));
    if (!state_.scaler.is_null()) engine_->scaler().from_json(state_.scaler);
  }

  void restore_bad_samples() {
    if (state_.bad_samples.is_null()) return;
    feed_->bad_samples().from_json(state_.bad_samples.at("train"));
    if (evaluation_) evaluation_->set().bad_samples().from_json(state_.bad_samples.at("eval"));
    const uint64_t most =
        std::max(feed_->bad_samples().count(), evaluation_ ? evaluation_->set().bad_samples().count() : 0);
    if (most > uint64_t(recipe_.data.skip_bad_samples))
      throw Error(ErrorKind::kRecipe, "data.skip_bad_samples",
                  str("is ", recipe_.data.skip_bad_samples, ", and this run has left out ", most, " samples already"),
                  str("set it to ", most, " or more, or mend the data and start anew with --resume never"));
  }

  void step() {
    const double begin = clock_.monotonic_seconds();
    StepSettings settings;
    settings.lr = schedule_->rate(state_.applied_samples) * watch_->lr_factor();
    settings.momentum = schedule_->momentum(state_.applied_samples);
    settings.step = state_.applied_steps + 1;
    if (spikes_ && recipe_.train.loss_spike->action != "record") settings.loss_limit = spikes_->limit();
    const StepResult result = step_within_memory(settings);
    if (!result.finite && !result.overflowed)
      diverged(str("the loss or a gradient became NaN or infinite in step ", state_.step + 1));
    ++state_.step;
    note_bad_samples(feed_->bad_samples(), observer_);
    if (result.finite && !result.over_limit && result.samples > 0) {
      ++state_.applied_steps;
      state_.applied_samples += plan_->slots().step_samples(state_.step - 1);
    }
    const double loss = result.samples > 0 ? result.loss_sum / double(result.samples) : state_.last_loss;
    if (response_ && result.finite && result.samples > 0)
      response_->observe(loss, result.over_limit, state_, *plan_, *feed_);
    // A loss that overflowed in fp16 is of the scale's making: it does not enter the mean.
    if (std::isfinite(loss)) {
      state_.log_loss_sum += result.loss_sum;
      state_.log_samples += result.samples;
    }
    state_.log_time += result.time;
    state_.time += result.time;
    if (state_.step % log_every_ == 0 || state_.step == plan_->total_steps())
      log_->write_step(state_, samples(), settings.lr);
    const double end = clock_.monotonic_seconds();
    step_seconds_ = end - begin;
    progress_.step({.step = state_.step,
                    .samples = samples(),
                    .epoch = double(samples()) / double(plan_->samples_per_epoch()),
                    .loss = result.finite ? loss : state_.last_loss,
                    .lr = settings.lr},
                   /*last=*/state_.step == plan_->total_steps(), result.samples, step_seconds_);
    const TimeSplit book_keeping{.other = std::max(0.0, end - begin - result.time.total())};
    state_.log_time += book_keeping;
    state_.time += book_keeping;
  }

  // A step whose activations do not fit is tried again in smaller slots: nothing of it was applied.
  StepResult step_within_memory(const StepSettings& settings) {
    const auto fill = [this](const data::Slot& slot, at::Tensor& images, at::Tensor& target) {
      prefetcher_ ? prefetcher_->take(state_.step, slot, images, target) : feed_->fill(slot, images, target);
    };
    for (;;) {
      try {
        return engine_->step(plan_->slots(), state_.step, settings, fill);
      } catch (const tensor::OutOfMemory& full) {
        const int64_t slot = *recipe_.train.slot;
        if (slot == 1)
          throw Error(ErrorKind::kEnvironment, "memory_budget", str(full.what(), "; a single sample does not fit"),
                      str("raise memory_budget, ",
                          recipe_.train.activation_checkpointing ? "" : "set train.activation_checkpointing: true, ",
                          "or use fewer devices"));
        prefetcher_.reset();  // before its threads would see the new plan
        use_slot((slot + 1) / 2);
        start_prefetcher();
        observer_.note(/*warning=*/true,
                       str(full.what(), ": from step ", state_.step + 1, " on, ", plan_->slots().slots_per_step(),
                           " micro-batches of ", *recipe_.train.slot, " samples in place of ", slot));
      }
    }
  }

  // Batches are made ahead where making one takes decoding or a disk.
  void start_prefetcher() {
    prefetcher_.reset();
    const int64_t most = workers_of(recipe_, *train_data_);
    if (most == 0) return;
    prefetcher_.emplace(*feed_, plan_->slots(),
                        Prefetcher::Options{.first_step = state_.step,
                                            .end_step = plan_->total_steps(),
                                            .replicas = engine_->replicas(),
                                            .least_threads = int(recipe_.data.workers.value_or(1)),
                                            .most_threads = int(most)});
  }

  void use_slot(int64_t slot) {
    state_.slot = slot;
    recipe_.train.slot = slot;
    make_plan();
  }

  void make_plan() {
    plan_.emplace(recipe_, feed_->bucket_samples());
    feed_->set_total_steps(plan_->total_steps());
  }

  // False: stopped on request before it was done. kept: whether the checkpoint of this step is to be, as one of the
  // best.
  bool evaluate(bool* kept = nullptr) {
    if (!evaluation_) {
      state_.evaluation_pending = false;
      return true;
    }
    const std::optional<EvaluationDetails> details =
        evaluation_->run(*engine_, state_.step, stop_, state_.evaluation_seconds);
    if (!details) return false;
    if (!std::isfinite(details->result.loss))
      diverged(str("the evaluation loss is NaN or infinite after step ", state_.step), /*whole=*/false);
    state_.evaluation = details->result;
    state_.evaluated = true;
    state_.evaluation_pending = false;
    const bool is_kept = watch_->evaluated(state_);
    if (kept != nullptr) *kept = is_kept;
    log_->write_evaluation(state_.evaluation, samples());
    evaluation_->write(*details);
    observer_.evaluated(state_.evaluation);
    if (state_.stopped_early) {
      const int64_t count = state_.evaluations_without_better;
      const double least = recipe_.train.early_stop->min_delta;
      observer_.note(/*warning=*/false,
                     str("stopped early: ", count, count == 1 ? " evaluation" : " evaluations", " in a row ",
                         count == 1 ? "was" : "were", " not better ",
                         least > 0 ? "by " + shortest_double(least) : str("than that of step ", state_.best->step)));
    }
    return true;
  }

  // All that a checkpoint holds of objects beside state_.
  void note_states() {
    note_bad_samples(feed_->bad_samples(), observer_);  // named before they count as known
    if (recipe_.train.precision == "fp16") state_.scaler = engine_->scaler().to_json();
    if (spikes_) state_.spike_detector = spikes_->to_json();
    if (recipe_.data.skip_bad_samples > 0)
      state_.bad_samples = {{"train", feed_->bad_samples().to_json()},
                            {"eval", evaluation_ ? evaluation_->set().bad_samples().to_json() : Json::array()}};
  }

  // for_itself: whatever the cadence says.
  void save_where_due(bool for_itself) {
    saving([&] {
      if (for_itself) checkpoints_->save(state_, *plan_);
      checkpoints_->after_step(state_, *plan_, step_seconds_);
    });
  }

  void save_now() {
    saving([&] { checkpoints_->save_now(state_, *plan_); });
  }

  // A weight that is not finite is found by whoever copies it.
  template <class Work>
  void saving(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDiverged) throw;
      diverged(error.problem(), /*whole=*/false);
    }
  }

  // While the run ends for another reason already.
  template <class Work>
  void saving_or_not(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDiverged)
        observer_.note(/*warning=*/true, "the state before it could not be saved: " + error.message());
    }
  }

  TrainOutcome interrupt() { return end(/*interrupted=*/true); }

  // The state is on the disk when this returns, unless there was no time for it: then the run was interrupted.
  TrainOutcome end(bool interrupted) {
    if (state_.step > 0) save_now();
    return outcome(interrupted || (state_.step > 0 && !checkpoints_->saved(state_.step)));
  }

  // There is nothing to save of it.
  TrainOutcome stopped_before_it_began() const {
    TrainOutcome outcome;
    outcome.interrupted = true;
    outcome.summary = OrderedJson::object();
    const std::string folder = options_.run_directory + "/checkpoints";
    for (const checkpoint::Candidate& one : checkpoint::list_checkpoints(fs_, folder, /*hash=*/false)) {
      if (!one.valid) continue;
      outcome.checkpoint = one.path;
      outcome.state.step = outcome.saved_step = one.step;
      outcome.samples = outcome.saved_samples = checkpoint::read_manifest(fs_, one.path).samples;
      break;
    }
    return outcome;
  }

  // whole: the state is that before the step which failed, and worth keeping.
  [[noreturn]] void diverged(const std::string& what, bool whole = true) {
    log_->flush();
    log_->sync();
    std::string kept = "no checkpoint had been saved yet";
    saving_or_not([&] { checkpoints_->settle(state_); });
    if (whole && saved_->newest_step() < state_.step && state_.step > 0) {
      // Without pruning, so that older ones stay to go back to.
      note_states();
      saving_or_not([&] { saved_->save(*engine_, state_, {.samples = samples()}, nullptr); });
    }
    if (saved_->newest_step() > 0) kept = str("the last good state is kept: ", saved_->newest_path());
    throw Error(ErrorKind::kDiverged, "", what, kept + "; " + finite_advice(recipe_));
  }

  TrainOutcome outcome(bool interrupted) {
    log_->flush();
    log_->sync();
    TrainOutcome outcome;
    outcome.interrupted = interrupted;
    outcome.state = state_;
    outcome.samples = samples();
    outcome.checkpoint = saved_->newest_path();
    outcome.saved_step = saved_->newest_step();
    outcome.saved_samples = saved_->newest_samples();
    outcome.summary =
        run_summary(interrupted, state_, outcome.samples, recipe_, *engine_,
                    prefetcher_ ? std::optional(prefetcher_->figures()) : std::nullopt, checkpoints_->figures(),
                    {train_data_->info(), feed_->bad_samples()},
                    evaluation_ ? std::optional(UsedData{evaluation_->set().info(), evaluation_->set().bad_samples()})
                                : std::nullopt);
    return outcome;
  }

  FileSystem& fs_;
  Clock& clock_;
  const TrainOptions& options_;
  recipe::Recipe recipe_;  // options_.recipe with auto decided
  TrainObserver& observer_;
  const std::function<bool()>& stop_;

  std::unique_ptr<data::Dataset> train_data_;
  std::optional<DataFeed> feed_;
  std::optional<RunEvaluation> evaluation_;
  model::InputShape input_;
  std::optional<RunPlan> plan_;
  std::optional<Schedule> schedule_;
  std::optional<EvaluationWatch> watch_;
  std::optional<SpikeWatch> spikes_;
  std::optional<Engine> engine_;
  std::optional<Prefetcher> prefetcher_;
  std::optional<SavedState> saved_;
  std::optional<RunLog> log_;
  std::optional<RunCheckpoints> checkpoints_;  // after all that it uses
  std::optional<SpikeResponse> response_;

  RunState state_;
  uint64_t log_every_ = 1;
  double step_seconds_ = 0;
  ProgressReporter progress_;
};

}  // namespace

TrainOutcome train(FileSystem& fs, Clock& clock, const TrainOptions& options, TrainObserver& observer,
                   const std::function<bool()>& stop) {
  try {
    return Run(fs, clock, options, observer, stop).run();
  } catch (const tensor::OutOfMemory& full) {  // a step that does not fit is tried in smaller slots: this is the model
    throw Error(ErrorKind::kEnvironment, "memory_budget", str(full.what(), ": the model does not fit"),
                "raise memory_budget, use fewer devices, or a smaller model");
  }
}

}  // namespace skytrain::train
