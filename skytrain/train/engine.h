// skytrain/train/engine.h
//
// One optimizer step on the CPU devices of this process.
//
// A CPU device is a replica: a thread with its own buffers, gradients and activations over one set of parameters in
// shared memory. A step deals its slots (data/slots.h) to the replicas; each computes the gradients of its slots, sums
// its part of everyone's gradients, and steps its part of the parameters. So there is no all-reduce, no copy of
// parameters, and the optimizer's work is divided too.
//
// What a step does to parameters, buffers and optimizer state is a pure function of the state before it, its samples
// and the number of replicas: gradients are summed in the order of replicas, and a slot starts from the buffers of the
// step's start, whoever computes it.

#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "skytrain/data/slots.h"
#include "skytrain/model/model.h"
#include "skytrain/train/grad_scaler.h"
#include "skytrain/train/loss.h"
#include "skytrain/train/optimizer.h"
#include "skytrain/train/precision.h"

namespace skytrain::train {

// Seconds of replica 0. `other` is waiting for the other replicas, and the step's own book-keeping.
struct TimeSplit {
  double data = 0, forward = 0, backward = 0, optimizer = 0, other = 0;
  double total() const { return data + forward + backward + optimizer + other; }
  TimeSplit& operator+=(const TimeSplit& more);
};

// The most bytes that tensors held while replica 0 was in a phase (tensor/memory_budget.h); 0: not counted.
struct PhasePeaks {
  uint64_t forward = 0, backward = 0, optimizer = 0;
  uint64_t all() const { return std::max({forward, backward, optimizer}); }
};

struct StepResult {
  double loss_sum = 0;       // over the step's samples
  uint64_t samples = 0;      // in the loss; 0: all were left out, and nothing was changed
  bool finite = true;        // false: loss or a gradient is NaN or infinite, and parameters and moments are as before
  bool overflowed = false;   // fp16: not finite, and the loss scale was lowered for it: go on with the next step
  bool over_limit = false;   // the mean loss was beyond StepSettings::loss_limit, and nothing was changed
  double gradient_norm = 0;  // before clipping; 0 when clipping by norm is off
  TimeSplit time;
};

// Fills images [n, C, H, W] and target with the slot's n = slot.count samples, or puts other tensors into their place:
// with other H and W, or with a smaller n (0 too) where samples are left out: they weigh nothing in the loss. target:
// classes [n] (int64), or values [n, Options::target_values] in Options::dtype. Called by replica threads, at the same
// time for different slots.
using FillSlot = std::function<void(const data::Slot& slot, at::Tensor& images, at::Tensor& target)>;

class Engine {
 public:
  struct Options {
    int replicas = 1;
    int threads_per_replica = 1;  // of LibTorch's own loops inside an operator
    Precision precision = Precision::kFp32;
    std::optional<double> clip_norm;   // of the global gradient norm, as torch.nn.utils.clip_grad_norm_
    std::optional<double> clip_value;  // of each element, as clip_grad_value_; after clip_norm
    std::optional<double> ema;         // decay, as torch.optim.swa_utils.get_ema_multi_avg_fn
    Loss loss;
    int64_t target_values = 0;          // 0: targets are classes
    at::ScalarType dtype = at::kFloat;  // of parameters and images; float64 for parity checks
    at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;  // of images inside the model
    at::MemoryFormat image_format = at::MemoryFormat::Contiguous;   // in which FillSlot gets them
    bool activation_checkpointing = false;
    GradScaler::Options scaler;  // fp16
    model::InputShape input;
  };
  // The initial weights are drawn from `seed`. built: the model of that seed, if the caller has one already. Throws
  // what build_model and build_optimizer throw.
  Engine(const recipe::ModelSpec& model, const recipe::OptimizerSpec& optimizer, uint64_t seed, const Options& options,
         std::unique_ptr<model::Model> built = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs step `step` (0-based over the run) of `slots`. An exception of a replica is rethrown here; nothing was changed
  // then, unless the optimizer itself threw: then the state is torn and the run must end. When it is
  // tensor::OutOfMemory of forward or backward, the step can be tried again with smaller slots. One caller.
  StepResult step(const data::Slots& slots, uint64_t step, const StepSettings& settings, const FillSlot& fill);

  // Runs `work(replica)` on every replica's thread at once and returns when all are done; the first exception is
  // rethrown. For evaluation. Replica 0 is the caller.
  void for_each_replica(const std::function<void(int replica)>& work);

  // Called in each step when all gradients are there, before anything of the state changes.
  void set_before_update(std::function<void()> before_update) { before_update_ = std::move(before_update); }

  // Called by a replica whose part of a step threw: so that nobody goes on waiting for what it would have done. Others
  // may throw data::ReadAhead::Cancelled then, which is no reason of its own.
  void set_on_failure(std::function<void()> on_failure) { on_failure_ = std::move(on_failure); }

  int replicas() const { return options_.replicas; }
  const Options& options() const { return options_; }
  // Replica 0's model holds the committed parameters and buffers.
  model::Model& model(int replica = 0);
  const model::Model& model(int replica = 0) const { return const_cast<Engine*>(this)->model(replica); }
  // Copies the committed buffers into every replica: before an evaluation.
  void share_buffers();
  struct Replica;  // engine_parts.h
  // While alive, every replica's model has the running mean of the weights (Options::ema); nothing without one.
  class AveragedWeights {
   public:
    explicit AveragedWeights(Engine& engine) : engine_(engine) { engine_.exchange_weights(); }
    ~AveragedWeights() { engine_.exchange_weights(); }
    AveragedWeights(const AveragedWeights&) = delete;
    AveragedWeights& operator=(const AveragedWeights&) = delete;

   private:
    Engine& engine_;
  };
  const PhasePeaks& peaks() const { return peaks_; }  // of all steps so far
  // fp16's loss scale: checkpoint state beside the tensors.
  GradScaler& scaler() { return scaler_; }
  // Everything that a checkpoint must hold, by name: "model.*", "optimizer.*", "ema.*". Valid between steps.
  std::vector<tensor::NamedTensor> state() const;
  // To be called after state() was written to from outside (a restore).
  void state_restored();

 private:
  struct Job;
  void start_threads();
  void replica_main(int index);
  void rethrow_failure();
  void run_step(Replica& replica);
  void compute_gradients(Replica& replica);
  uint64_t samples_of_step() const;
  bool over_limit() const;
  void seed_dropout(const data::Slot& slot);
  void compute_slot(Replica& replica, const data::Slot& slot, double step_samples);
  void reduce_part(Replica& replica);
  void step_part(Replica& replica);
  void average_part(Replica& replica);
  void merge_buffers();
  void note_peak(const Replica& replica, uint64_t& phase);
  void exchange_weights();

  Options options_;
  uint64_t seed_;
  std::vector<std::vector<ParameterSlice>> parts_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<Optimizer> optimizer_;
  GradScaler scaler_;
  PhasePeaks peaks_;
  std::vector<at::Tensor> averages_;  // of the parameters; empty without Options::ema
  std::function<void()> before_update_, on_failure_;
  std::unique_ptr<Job> job_;
};

}  // namespace skytrain::train
