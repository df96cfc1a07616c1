// skytrain/train/engine_parts.h
//
// What engine.cc (threads and their order) and engine_step.cc (the work of a step) share.

#pragma once
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/spin_barrier.h"

namespace skytrain::train {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Moves the time since the last call to `into`.
class Lap {
 public:
  void to(double& into) {
    const double time = steady_seconds();
    into += time - last_;
    last_ = time;
  }

 private:
  double last_ = steady_seconds();
};

struct Engine::Replica {
  int index = 0;
  std::unique_ptr<model::Model> model;
  std::vector<at::Tensor> buffer_sums;  // float buffers: sums over this replica's slots of the step
  double buffer_weight = 0;             // of those slots, together
  at::Tensor images, target;            // reused when the slot's size does not change
  // Results of the current step.
  double loss_sum = 0, squares = 0;
  uint64_t samples = 0;
  bool finite = true;       // its own loss; written before the first barrier of a step only
  bool finite_sums = true;  // its part of the sums; written between the first barrier and the second
  std::exception_ptr failure;
  TimeSplit time;
  std::thread thread;  // none for replica 0
};

// Runs `phase`; false when it threw, and then the replica has its failure.
template <class Phase>
bool guarded_by(Engine::Replica& replica, const Phase& phase) {
  tensor::take_last_out_of_memory();  // what happened before is not of this phase
  try {
    phase();
    return true;
  } catch (...) {
    // TorchScript's interpreter turns any exception into one of its own.
    const std::optional<tensor::OutOfMemory> out_of_memory = tensor::take_last_out_of_memory();
    replica.failure = out_of_memory ? std::make_exception_ptr(*out_of_memory) : std::current_exception();
    return false;
  }
}

// What all replicas work on together.
struct Engine::Job {
  explicit Job(int threads) : barrier(threads) {}
  SpinBarrier barrier;
  enum class Kind { kStep, kFunction, kQuit } kind = Kind::kStep;
  const data::Slots* slots = nullptr;
  uint64_t step = 0;
  StepSettings settings;
  float loss_scale = 1;
  const FillSlot* fill = nullptr;
  std::atomic<bool> failed = false;  // a replica's gradients: the others need not go on with theirs
  const std::function<void(int)>* work = nullptr;
  std::vector<at::Tensor> start_buffers;  // of the step: what each slot begins with
};

}  // namespace skytrain::train
