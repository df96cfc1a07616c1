#include "skytrain/worker/worker.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <torch/version.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <thread>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/process.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/proto/channel.h"
#include "skytrain/proto/messages.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/tensor/memory.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/auto_decisions.h"
#include "skytrain/train/model_source.h"
#include "skytrain/train/trainer.h"
#include "skytrain_version.h"

namespace skytrain::worker {
namespace {

// Passes what the trainer tells on to the front program. A front program that has gone is noticed by the listener.
class Reporter final : public train::TrainObserver {
 public:
  Reporter(proto::Channel& channel, FileSystem& fs, std::string run_directory)
      : channel_(channel), fs_(fs), run_directory_(std::move(run_directory)) {}

  void started(const train::RunStarted& run) override {
    const OrderedJson recipe = recipe::to_json(run.recipe);
    if (!run.decisions.empty()) write_file_atomically(fs_, run_directory_ + "/recipe.json", recipe.dump(1) + "\n");
    proto::Started message;
    message.resume_step = run.resume_step;
    message.resume_samples = run.resume_samples;
    message.total_steps = run.total_steps;
    message.total_samples = run.total_samples;
    message.samples_per_epoch = run.samples_per_epoch;
    message.parameters = run.parameters;
    message.devices = run.recipe.devices.value();
    message.slot = run.recipe.train.slot.value();
    message.precision = run.recipe.train.precision;
    message.decisions = run.decisions;
    message.recipe = recipe;
    send(message);
  }
  void progress(const train::StepReport& step) override {
    if (!step.first && !channel_.writable()) return;
    send(proto::ProgressReport{step.step, step.samples, step.epoch, step.loss, step.lr, step.samples_per_second,
                               step.unix_seconds, step.first});
  }
  void note(bool warning, const std::string& line) override { send(proto::Note{warning ? "warning" : "info", line}); }
  void checkpoint_saved(uint64_t step, uint64_t samples, const std::string& path, double seconds) override {
    send(proto::CheckpointDone{step, samples, path, seconds});
  }
  void evaluated(const train::Evaluation& evaluation) override {
    send(proto::EvaluationDone{evaluation.step, evaluation.samples, evaluation.loss, evaluation.metrics,
                               evaluation.seconds});
  }

  void send(const proto::Message& message) { channel_.send(proto::encode(message)); }

 private:
  proto::Channel& channel_;
  FileSystem& fs_;
  std::string run_directory_;
};

// Waits for `stop` or for the front program's end, on its own thread.
class Listener {
 public:
  explicit Listener(proto::Channel& channel) : channel_(channel), thread_([this] { listen(); }) {}
  ~Listener() {
    done_ = true;
    ::shutdown(channel_.fd(), SHUT_RD);  // wakes it
    thread_.join();
  }

  // When all must be done, in monotonic seconds; none: there is no such time.
  std::optional<double> deadline() const {
    const double at = deadline_;
    return std::isfinite(at) ? std::optional(at) : std::nullopt;
  }

 private:
  void listen() {
    while (!done_) {
      try {
        if (const std::optional<Json> frame = channel_.receive(/*seconds=*/1)) {
          const proto::Message message = proto::decode(*frame);
          if (const auto* stop = std::get_if<proto::Stop>(&message)) {
            if (stop->seconds) deadline_ = Clock::real().monotonic_seconds() + *stop->seconds;
            StopSignal::request();
          }
        } else if (channel_.closed()) {
          StopSignal::request();
          return;
        }
      } catch (const std::exception& error) {
        log_error(error.what());
        StopSignal::request();
        return;
      }
    }
  }

  proto::Channel& channel_;
  std::atomic<bool> done_{false};
  std::atomic<double> deadline_{std::numeric_limits<double>::infinity()};
  std::thread thread_;
};

std::function<bool()> stop_requested() {
  return [] { return StopSignal::requests() > 0; };
}

train::TellNote note_sender(proto::Channel& channel) {
  return [&channel](const std::string& line) { channel.send(proto::encode(proto::Note{"info", line})); };
}

proto::Message run(const proto::Evaluate& order, proto::Channel& channel) {
  const Listener listener(channel);
  const train::ModelSource source{recipe::from_json(order.recipe), order.checkpoint};
  const std::optional<train::EvaluationOutcome> outcome =
      train::evaluate_model(FileSystem::real(), source, note_sender(channel), stop_requested());
  if (!outcome) throw Error(ErrorKind::kAborted, "", "stopped before the evaluation was done");
  const train::Evaluation& result = outcome->details.result;
  OrderedJson summary = train::to_json(result);
  if (!order.checkpoint.empty()) summary["step"] = result.step;
  summary["parameters"] = outcome->parameters;
  summary["confusion"] = outcome->json.value("confusion", OrderedJson::array());
  summary["classes"] = outcome->json.value("classes", OrderedJson::array());
  channel.send(
      proto::encode(proto::EvaluationDone{result.step, result.samples, result.loss, result.metrics, result.seconds}));
  return proto::Finished{summary};
}

proto::Message run(const proto::Trace& order, proto::Channel& channel) {
  const Listener listener(channel);
  train::write_torchscript(FileSystem::real(), {recipe::from_json(order.recipe), order.checkpoint},
                           note_sender(channel), order.output);
  return proto::Finished{{{"output", order.output}}};
}

proto::Message run(const proto::Start& start, proto::Channel& channel) {
  Reporter reporter(channel, FileSystem::real(), start.run_directory);
  const Listener listener(channel);
  train::TrainOptions options;
  options.recipe = recipe::from_json(start.recipe);
  options.run_directory = start.run_directory;
  options.resume = start.resume;
  options.log_every = start.log_every;
  options.deadline = [&listener] { return listener.deadline(); };
  if (start.keep_snapshot) options.memory.emplace(proto::kSnapshotFd, proto::kSnapshotManifestFd);
  const train::TrainOutcome outcome =
      train::train(FileSystem::real(), Clock::real(), options, reporter, stop_requested());
  if (outcome.interrupted)
    return proto::Interrupted{outcome.state.step, outcome.samples,       outcome.checkpoint,
                              outcome.saved_step, outcome.saved_samples, outcome.summary};
  return proto::Finished{outcome.summary};
}

proto::Failed failure(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error))
    return {ours->kind(), ours->where(), ours->problem(), ours->hint()};
  if (const auto* full = dynamic_cast<const tensor::OutOfMemory*>(&error))
    return {ErrorKind::kEnvironment, "", full->what(), "use a smaller model or train.batch, or raise memory_budget"};
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return {ErrorKind::kEnvironment, "", "out of memory", "use a smaller train.batch or model"};
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));                       // LibTorch appends a stack trace
  if (what.find("can't allocate memory") != std::string::npos)  // c10's CPU allocator
    return {ErrorKind::kEnvironment, "", what, "use a smaller train.batch or model"};
  return {ErrorKind::kInternal, "", what, "please report this, with the run directory's log.txt"};
}

}  // namespace

int serve() {
  tensor::install_memory_budget();
  tensor::keep_freed_memory(train::this_machine().cores);
  StopSignal::install();
  if (fcntl(proto::kWorkerFd, F_GETFD) < 0) {
    std::fprintf(stderr, "skytrain-worker is started by skytrain; see skytrain --help\n");
    return exit_code(ErrorKind::kUsage);
  }
  proto::Channel channel{Fd(proto::kWorkerFd)};
  channel.send(proto::encode(proto::Hello{proto::kProtocolVersion, SKYTRAIN_VERSION, TORCH_VERSION}));
  proto::Message end;
  try {
    const std::optional<Json> frame = channel.receive(/*seconds=*/-1);
    if (!frame) return 0;  // the front program has gone before it gave an order
    const proto::Message order = proto::decode(*frame);
    if (const auto* start = std::get_if<proto::Start>(&order)) {
      end = run(*start, channel);
    } else if (const auto* evaluate = std::get_if<proto::Evaluate>(&order)) {
      end = run(*evaluate, channel);
    } else if (const auto* trace = std::get_if<proto::Trace>(&order)) {
      end = run(*trace, channel);
    } else {
      throw Error(ErrorKind::kInternal, "", "expected an order");
    }
  } catch (const std::exception& error) {
    log_error(error.what());
    end = failure(error);
  }
  channel.send(proto::encode(end));
  if (const auto* failed = std::get_if<proto::Failed>(&end)) return exit_code(failed->kind);
  return std::holds_alternative<proto::Interrupted>(end) ? exit_code(ErrorKind::kInterrupted) : 0;
}

}  // namespace skytrain::worker
