#include "skytrain/train/run_checkpoints.h"

#include <algorithm>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

constexpr double kPollSeconds = 0.001;
// Between states in memory: at least so long, and so many times what one takes.
constexpr double kMemorySeconds = 2, kMemoryShare = 200;
constexpr double kSecondsBeforeNextTry = 0.5;
constexpr double kMargin = 1.2;  // of what saving is expected to take, before a save that goes well is given up for it
// Of state, for each second of training that a save costs, until that was measured: a copy, and a part of the cores
// while it is being written.
constexpr double kExpectedBytesPerSecond = 4e9;

}  // namespace

RunCheckpoints::RunCheckpoints(Clock& clock, const recipe::CheckpointSpec& spec, SavedState& saved, Engine& engine,
                               RunLog& log, TrainObserver& observer, std::function<void()> complete,
                               const std::function<bool()>& stop,
                               const std::function<std::optional<double>()>& deadline, const RunState& state)
    : clock_(clock),
      spec_(spec),
      saved_(saved),
      engine_(engine),
      log_(log),
      observer_(observer),
      complete_(std::move(complete)),
      stop_(stop),
      deadline_(deadline),
      best_saved_(state.best_steps),
      last_save_(clock.monotonic_seconds()),
      last_in_memory_(last_save_) {
  engine_.set_before_update([this] { wait_for_snapshot(); });
  saved_.prepare(engine_);
  const auto is_auto = [](const recipe::Duration& every) { return every == recipe::Duration::automatic(); };
  if (!std::any_of(spec_.every.begin(), spec_.every.end(), is_auto)) return;
  uint64_t bytes = 0;
  for (const tensor::NamedTensor& item : engine_.state()) bytes += item.tensor.nbytes();
  auto_.emplace(spec_.mtbf.value, double(bytes) / kExpectedBytesPerSecond);
}

RunCheckpoints::~RunCheckpoints() {
  engine_.set_before_update({});
  if (!saved_.saving()) return;
  try {
    saved_.finish_save(nullptr);
  } catch (...) {  // the run ends for another reason, which is told
  }
}

bool RunCheckpoints::saved(uint64_t step) const { return saved_.newest_step() == step; }

bool RunCheckpoints::due_by_time(const RunPlan& plan) const {
  const double since = clock_.monotonic_seconds() - last_save_;
  return plan.checkpoint_due_by_time(since) || (auto_ && since >= auto_->interval());
}

void RunCheckpoints::after_step(RunState& state, const RunPlan& plan, double step_seconds) {
  if (auto_ && !saved_.saving_to_memory())
    auto_->step(step_seconds, std::min(step_seconds, std::exchange(blocked_in_step_, 0)), saved_.saving());
  if (saved_.saving() && saved_.save_is_done()) finish(state);
  if (plan.checkpoint_due_by_progress(state.step)) {
    save(state, plan);
  } else if (!saved_.saving() && due_by_time(plan)) {
    start(state, plan);
  } else if (!saved_.saving() && memory_save_due()) {
    start_memory_save(state, plan);
  }
}

bool RunCheckpoints::memory_save_due() const {
  if (!saved_.keeps_memory()) return false;
  const double last = std::max(last_in_memory_, last_save_);
  return clock_.monotonic_seconds() - last >= std::max(kMemorySeconds, kMemoryShare * memory_seconds_);
}

void RunCheckpoints::start_memory_save(const RunState& state, const RunPlan& plan) {
  last_in_memory_ = started_ = clock_.monotonic_seconds();
  complete_();
  log_.flush();  // a worker that comes after this one finds the lines that its state counts
  saved_.start_memory_save(engine_, state, plan.slots().samples_before(state.step));
}

void RunCheckpoints::save(RunState& state, const RunPlan& plan) {
  if (state.step == 0 || saved(state.step)) return;
  if (saved_.saving() && !saved_.saving_to_memory() && saved_.saving_step() == state.step) return;
  if (wait_for_other(state))
    start(state, plan);
  else
    not_saved(state, state.step);
}

void RunCheckpoints::save_now(RunState& state, const RunPlan& plan) {
  if (const std::optional<double> deadline = deadline_ ? deadline_() : std::nullopt)
    return save_before(state, plan, *deadline);
  settle(state);
  if (state.step == 0 || saved(state.step)) return;
  start(state, plan);
  failures_ = kMostFailures - 1;  // this one is the last
  finish(state);
}

void RunCheckpoints::save_before(RunState& state, const RunPlan& plan, double deadline) {
  const auto left = [&] { return deadline - clock_.monotonic_seconds(); };
  if (saved_.saving()) {
    const std::optional<double> rest = saved_.rest_seconds(), whole = saved_.whole_seconds();
    const bool newest = !saved_.saving_to_memory() && saved_.saving_step() == state.step;
    if (!newest && rest && whole && *rest + *whole > left() && *whole * kMargin <= left()) saved_.give_up();
    finish_quietly(state);
  }
  for (int tries = 0; tries < kMostFailures && state.step > 0 && !saved(state.step); ++tries) {
    if (tries > 0) Clock::real().sleep_seconds(std::clamp(left(), 0.0, kSecondsBeforeNextTry));
    const std::optional<double> whole = saved_.whole_seconds();
    if (left() <= 0 || (whole && *whole > left())) {
      observer_.note(/*warning=*/true,
                     str("a checkpoint takes ", whole ? "about " + human_seconds(*whole) + " here" : "time", ", and ",
                         left() > 0 ? human_seconds(left()) + " are left" : "no time is left",
                         ": none is taken of step ", state.step));
      return;
    }
    start(state, plan);
    finish_quietly(state);
  }
}

// A save that is given up in time, or fails, is no reason not to end in good order.
void RunCheckpoints::finish_quietly(RunState& state) {
  failures_ = std::min(failures_, kMostFailures - 2);
  finish(state);
}

void RunCheckpoints::settle(RunState& state) {
  if (saved_.saving()) finish_quietly(state);
}

// False: it takes too long, or the run is to stop.
bool RunCheckpoints::wait_for_other(RunState& state) {
  const double begin = clock_.monotonic_seconds();
  while (saved_.saving() && !saved_.save_is_done()) {
    if (stop_()) {
      blocked_ += clock_.monotonic_seconds() - begin;
      return false;
    }
    if (clock_.monotonic_seconds() - begin > kMostSecondsOfWaiting) {
      observer_.note(/*warning=*/true,
                     str("the checkpoint of step ", saved_.saving_step(), " is still being written after ",
                         human_seconds(clock_.monotonic_seconds() - started_), ": none is taken of step ", state.step,
                         "; save less often, or to a faster disk"));
      blocked_ += clock_.monotonic_seconds() - begin;
      return false;
    }
    Clock::real().sleep_seconds(kPollSeconds);
  }
  blocked_ += clock_.monotonic_seconds() - begin;
  if (saved_.saving()) finish(state);
  return true;
}

void RunCheckpoints::start(RunState& state, const RunPlan& plan) {
  const double begin = clock_.monotonic_seconds();
  complete_();
  log_.flush();
  SavedState::SaveOptions options;
  options.samples = plan.slots().samples_before(state.step);
  options.keep = spec_.keep;
  best_saving_ = state.best_steps;
  options.spared = [best = best_saving_, plan](uint64_t step) {
    return plan.kept_for_good(step) ||
           std::any_of(best.begin(), best.end(), [=](const auto& one) { return one.first == step; });
  };
  options.before_commit = [this] { log_.sync(); };
  saved_.start_save(engine_, state, std::move(options));
  last_save_ = started_ = begin;
  blocked_by_save_ = clock_.monotonic_seconds() - begin;
  blocked_ += blocked_by_save_;
}

void RunCheckpoints::finish(RunState& state) {
  const double begin = clock_.monotonic_seconds();
  std::vector<std::string> notes;
  const uint64_t step = saved_.saving_step();
  const bool in_memory = saved_.saving_to_memory();
  std::optional<Error> failure;
  try {
    saved_.finish_save(&notes);
  } catch (const Error& error) {
    failure = error;
  }
  const double end = clock_.monotonic_seconds();
  blocked_ += end - begin;
  if (in_memory) {
    memory_seconds_ = end - started_;
    blocked_in_step_ = 0;  // what AutoCadence learns is the cost of saves to the disk
    ++figures_.memory_saves;
    if (failure) failed(*failure);
    return;
  }
  state.checkpoint_seconds += std::exchange(blocked_, 0);
  if (auto_) auto_->saved(end - started_);
  for (const std::string& line : notes) observer_.note(/*warning=*/true, line);
  if (!failure) {
    failures_ = 0;
    best_saved_ = best_saving_;
    ++figures_.saves;
    figures_.bytes = saved_.image_bytes();
    figures_.last = end - started_;
    figures_.blocked += blocked_by_save_;
    figures_.most_blocked = std::max(figures_.most_blocked, blocked_by_save_);
    observer_.checkpoint_saved(step, saved_.newest_samples(), saved_.newest_path(), blocked_by_save_ + (end - begin));
  } else {
    not_saved(state, step);
    failed(*failure);
  }
}

// Then it can't be one of the best, and the one that it had taken the place of stays.
void RunCheckpoints::not_saved(RunState& state, uint64_t step) {
  const auto is_it = [step](const auto& one) { return one.first == step; };
  if (std::any_of(state.best_steps.begin(), state.best_steps.end(), is_it)) state.best_steps = best_saved_;
}

void RunCheckpoints::failed(const Error& error) {
  if (error.kind() == ErrorKind::kInterrupted) {
    observer_.note(/*warning=*/true,
                   str("the checkpoint of step ", saved_.saving_step(), " was given up: ", error.problem()));
    return;
  }
  if (error.kind() == ErrorKind::kDiverged || error.kind() == ErrorKind::kLostWorkers || ++failures_ >= kMostFailures)
    throw error;
  observer_.note(/*warning=*/true, str("the checkpoint of step ", saved_.saving_step(), " could not be saved",
                                       stop_() ? ": " : ", training goes on: ", error.message()));
}

void RunCheckpoints::wait_for_snapshot() {
  if (!saved_.saving()) return;
  const double begin = clock_.monotonic_seconds();
  saved_.wait_for_snapshot();
  const double waited = clock_.monotonic_seconds() - begin;
  blocked_ += waited;
  blocked_in_step_ += waited;
  blocked_by_save_ += waited;
}

}  // namespace skytrain::train
