// skytrain/elastic/fake_worker.h
//
// For tests only: a worker that speaks the protocol and trains nothing. A test program is its own worker: its main()
// first calls run_fake_worker_if_asked(), and the test names a scenario through the environment.

#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/proto/channel.h"
#include "skytrain/proto/messages.h"

namespace skytrain::elastic {

inline constexpr const char* kFakeWorkerVariable = "SKYTRAIN_TEST_FAKE_WORKER";

class FakeWorker {
 public:
  // Returns the exit code.
  int play(const std::string& scenario) {
    if (scenario == "exit-at-once") {
      std::cerr << "error while loading shared libraries: libtorch_cpu.so: cannot open shared object file\n";
      return 127;
    }
    if (scenario == "killed-by-term-at-once") {
      std::signal(SIGTERM, SIG_DFL);
      std::raise(SIGTERM);
    }
    if (scenario == "silent") return wait_for_end_of_file(), 0;
    if (scenario == "garbage") {
      if (::write(proto::kWorkerFd, "hello, world\n", 13) != 13) return 1;
      return wait_for_end_of_file(), 0;
    }
    if (scenario == "other-protocol") {
      say(proto::Hello{proto::kProtocolVersion + 1, "9.9.9", "2.99.0"});
      return wait_for_end_of_file(), 0;
    }
    if (scenario == "no-hello") {
      say(proto::ProgressReport{});
      return wait_for_end_of_file(), 0;
    }

    say(proto::Hello{proto::kProtocolVersion, "0.1.0", "2.11.0"});
    const proto::Start start = std::get<proto::Start>(hear());
    std::cerr << "training in " << start.run_directory << std::endl;
    if (scenario == "killed-before-first-step") std::raise(SIGKILL);
    proto::Started started;
    started.total_steps = 3, started.total_samples = 24, started.samples_per_epoch = 24;
    started.parameters = 216650, started.devices = 2, started.slot = 4, started.precision = "fp32";
    started.decisions = {{"train.slot", "4 samples on 2 devices"}};
    started.recipe = start.recipe;
    if (started.recipe.contains("decided")) started.recipe["decided"] = true;
    say(started);
    for (uint64_t step = 1; step <= 2; ++step) {
      proto::ProgressReport progress;
      progress.step = step, progress.samples = 8 * step, progress.loss = 0.5, progress.lr = 0.1;
      progress.samples_per_second = 800, progress.first = step == 1;
      progress.unix_seconds = Clock::real().unix_seconds();
      say(progress);
    }
    say(proto::CheckpointDone{2, 16, start.run_directory + "/checkpoints/step-00000002", 0.01});
    say(proto::Note{"info", "a note"});

    if (scenario == "killed" || (scenario == "killed-unless-resumed" && !start.resume)) {
      std::cerr << "reading sample 17\n\nreading sample 18\n";
      std::raise(SIGKILL);
    }
    if (scenario == "segfault") {
      std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit code
      std::raise(SIGSEGV);
    }
    if (scenario == "leaves-without-a-word") return 0;
    if (scenario == "closes-and-stays") {
      ::close(proto::kWorkerFd);
      return wait_for_signal(), 0;
    }
    if (scenario == "superseded") {
      say(proto::Failed{ErrorKind::kLostWorkers, "", "another attempt has gone on with this run", ""});
      return 7;
    }
    if (scenario == "failed") {
      say(proto::Failed{ErrorKind::kData, "train.gz[7]", "label 99 is not below 10", "check the labels"});
      return 4;
    }
    if (scenario == "waits-for-stop") {
      hear();
      say(proto::Interrupted{2, 16, start.run_directory + "/checkpoints/step-00000002", 2, 16, Json::object()});
      return 75;
    }
    if (scenario == "ignores-stop") return wait_for_signal(), 0;

    say(proto::EvaluationDone{3, 10, 0.25, {{"top1", 0.9}}, 0.1});
    Json summary = {{"status", "complete"},
                    {"steps", 3},
                    {"samples", 24},
                    {"seconds", 0.03},
                    {"samples_per_second", 800},
                    {"peak_rss_bytes", 100000000},
                    {"train_loss", 0.5},
                    {"parameters", 216650},
                    {"devices", 2},
                    {"slot", 4},
                    {"precision", "fp32"},
                    {"eval", {{"loss", 0.25}, {"top1", 0.9}, {"samples", 10}}},
                    {"torch_version", "2.11.0"},
                    {"version", "0.1.0"},
                    {"data_fingerprint", {{"train", "aa"}, {"eval", "bb"}}}};
    summary["lock_inherited"] = ::fcntl(proto::kLockFd, F_GETFD) >= 0;
    summary["snapshot_inherited"] = ::fcntl(proto::kSnapshotFd, F_GETFD) >= 0 && start.keep_snapshot;
    summary["resume"] = start.resume;
    summary["recipe"] = start.recipe;
    say(proto::Finished{summary});
    if (scenario == "crashes-at-its-end") std::raise(SIGKILL);
    if (scenario == "hangs-at-its-end") wait_for_signal();
    return 0;
  }

 private:
  void say(const proto::Message& message) {
    if (!channel_.send(proto::encode(message))) std::_Exit(9);
  }
  proto::Message hear() {
    const auto frame = channel_.receive(60);
    if (!frame) std::_Exit(9);
    return proto::decode(*frame);
  }
  void wait_for_end_of_file() {
    while (channel_.receive(60)) {
    }
    if (!channel_.closed()) std::_Exit(9);
  }
  static void wait_for_signal() {
    ::alarm(60);
    ::pause();
  }

  proto::Channel channel_{Fd(proto::kWorkerFd)};
};

inline void run_fake_worker_if_asked() {
  if (const char* scenario = std::getenv(kFakeWorkerVariable)) std::_Exit(FakeWorker().play(scenario));
}

}  // namespace skytrain::elastic
