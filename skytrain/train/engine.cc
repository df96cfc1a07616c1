#include "skytrain/train/engine.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros_like.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <system_error>
#include <thread>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/train/reduce.h"
#include "skytrain/train/spin_barrier.h"

namespace skytrain::train {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Moves the time since the last call to `into`.
class Lap {
 public:
  void to(double& into) {
    const double time = now();
    into += time - last_;
    last_ = time;
  }

 private:
  double last_ = now();
};

}  // namespace

TimeSplit& TimeSplit::operator+=(const TimeSplit& more) {
  data += more.data;
  forward += more.forward;
  backward += more.backward;
  optimizer += more.optimizer;
  other += more.other;
  return *this;
}

struct Engine::Replica {
  int index = 0;
  std::unique_ptr<model::Model> model;
  std::vector<at::Tensor> buffer_sums;  // float buffers: sums over this replica's slots of the step
  uint64_t buffer_slots = 0;
  at::Tensor images, labels;  // reused when the slot's size does not change
  // Results of the current step.
  double loss_sum = 0, squares = 0;
  uint64_t samples = 0;
  bool finite = true;       // its own loss; written before the first barrier of a step only
  bool finite_sums = true;  // its part of the sums; written between the first barrier and the second
  std::exception_ptr failure;
  TimeSplit time;
  std::thread thread;  // none for replica 0
};

// What all replicas work on together.
struct Engine::Job {
  explicit Job(int threads) : barrier(threads) {}
  SpinBarrier barrier;
  enum class Kind { kStep, kFunction, kQuit } kind = Kind::kStep;
  const data::Slots* slots = nullptr;
  uint64_t step = 0;
  double lr = 0;
  const FillSlot* fill = nullptr;
  const std::function<void(int)>* work = nullptr;
  std::vector<at::Tensor> start_buffers;  // of the step: what each slot begins with
};

Engine::Engine(const recipe::ModelSpec& model, const recipe::OptimizerSpec& optimizer, uint64_t seed,
               const Options& options)
    : options_(options), job_(std::make_unique<Job>(options.replicas)) {
  at::set_num_threads(options_.threads_per_replica);
  for (int i = 0; i < options_.replicas; ++i) {
    auto replica = std::make_unique<Replica>();
    replica->index = i;
    replica->model = model::build_model(model, options_.input, at::detail::createCPUGenerator(seed), options_.dtype);
    if (i > 0) model::share_parameters(*replicas_[0]->model, *replica->model);
    for (const tensor::NamedTensor& buffer : replica->model->buffers())
      replica->buffer_sums.push_back(at::zeros_like(buffer.tensor));
    replicas_.push_back(std::move(replica));
  }
  for (const tensor::NamedTensor& buffer : replicas_[0]->model->buffers())
    job_->start_buffers.push_back(buffer.tensor.clone());
  parts_ = cut_parameters(replicas_[0]->model->parameters(), options_.replicas);
  optimizer_ = build_optimizer(optimizer, replicas_[0]->model->parameters(), parts_);
  start_threads();
}

// Threads wait at a gate of their own, not at the barrier, until all of them are there: a machine may refuse some.
void Engine::start_threads() {
  std::promise<bool> gate;
  const std::shared_future<bool> all_there = gate.get_future().share();
  try {
    for (int i = 1; i < options_.replicas; ++i)
      replicas_[i]->thread = std::thread([this, i, all_there] {
        if (all_there.get()) replica_main(i);
      });
  } catch (const std::system_error& error) {
    gate.set_value(false);
    for (const auto& replica : replicas_)
      if (replica->thread.joinable()) replica->thread.join();
    throw Error(ErrorKind::kEnvironment, "devices", str("cannot start ", options_.replicas, " threads: ", error.what()),
                "ask for fewer devices, or raise the limit of processes");
  }
  gate.set_value(true);
}

Engine::~Engine() {
  if (replicas_.size() > 1) {
    job_->kind = Job::Kind::kQuit;
    job_->barrier.arrive_and_wait();
    for (size_t i = 1; i < replicas_.size(); ++i) replicas_[i]->thread.join();
  }
}

model::Model& Engine::model(int replica) { return *replicas_[replica]->model; }

void Engine::replica_main(int index) {
  at::set_num_threads(options_.threads_per_replica);  // a setting of the calling thread
  Replica& replica = *replicas_[index];
  for (;;) {
    job_->barrier.arrive_and_wait();
    if (job_->kind == Job::Kind::kQuit) return;
    if (job_->kind == Job::Kind::kStep) {
      run_step(replica);
    } else {
      try {
        (*job_->work)(index);
      } catch (...) {
        replica.failure = std::current_exception();
      }
      job_->barrier.arrive_and_wait();
    }
  }
}

void Engine::for_each_replica(const std::function<void(int)>& work) {
  job_->kind = Job::Kind::kFunction;
  job_->work = &work;
  job_->barrier.arrive_and_wait();
  try {
    work(0);
  } catch (...) {
    replicas_[0]->failure = std::current_exception();
  }
  job_->barrier.arrive_and_wait();
  rethrow_failure();
}

void Engine::rethrow_failure() {
  std::exception_ptr first;
  for (const auto& replica : replicas_)
    if (std::exception_ptr failure = std::exchange(replica->failure, nullptr); failure && !first) first = failure;
  if (first) std::rethrow_exception(first);
}

StepResult Engine::step(const data::Slots& slots, uint64_t step, double lr, const FillSlot& fill) {
  job_->kind = Job::Kind::kStep;
  job_->slots = &slots;
  job_->step = step;
  job_->lr = lr;
  job_->fill = &fill;
  const double begin = now();
  job_->barrier.arrive_and_wait();
  run_step(*replicas_[0]);

  StepResult result;
  double squares = 0;
  for (const auto& replica : replicas_) {
    result.loss_sum += replica->loss_sum;
    result.samples += replica->samples;
    result.finite = result.finite && replica->finite && replica->finite_sums;
    squares += replica->squares;
  }
  rethrow_failure();
  result.gradient_norm = std::sqrt(squares);
  result.time = replicas_[0]->time;
  result.time.other += now() - begin - result.time.total();
  return result;
}

void Engine::run_step(Replica& replica) {
  replica.loss_sum = replica.squares = 0;
  replica.samples = 0;
  replica.finite = replica.finite_sums = true;
  replica.time = {};
  // A phase that throws leaves its error in the replica and a flag that stops the others at the next barrier: every
  // replica passes all barriers of a step, whatever happens.
  const auto guarded = [&replica](bool& ok, const auto& phase) {
    try {
      phase();
    } catch (...) {
      replica.failure = std::current_exception();
      ok = false;
    }
  };
  guarded(replica.finite, [&] { compute_gradients(replica, replica.loss_sum, replica.samples, replica.time); });
  Lap lap;
  job_->barrier.arrive_and_wait();  // all gradients are there
  lap.to(replica.time.other);
  bool healthy = true;  // of everybody's gradients; the same on all replicas
  for (const auto& other : replicas_) healthy = healthy && other->finite;
  if (healthy) guarded(replica.finite_sums, [&] { reduce_part(replica); });
  lap.to(replica.time.optimizer);
  job_->barrier.arrive_and_wait();  // all sums are there, and whether they are finite
  lap.to(replica.time.other);
  for (const auto& other : replicas_) healthy = healthy && other->finite_sums;
  bool stepped = true;
  if (healthy) {
    guarded(stepped, [&] {
      step_part(replica);
      if (replica.index == 0) merge_buffers();
    });
  }
  lap.to(replica.time.optimizer);
  job_->barrier.arrive_and_wait();  // all parameters are new
  lap.to(replica.time.other);
}

void Engine::compute_gradients(Replica& replica, double& loss_sum, uint64_t& samples, TimeSplit& time) {
  Lap lap;
  model::Model& model = *replica.model;
  model.set_training(true);
  for (const tensor::NamedTensor& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
  for (const at::Tensor& sum : replica.buffer_sums) sum.zero_();
  replica.buffer_slots = 0;
  const double step_samples = double(job_->slots->step_samples(job_->step));
  for (const data::Slot& slot : job_->slots->deal(job_->step, replica.index, options_.replicas)) {
    if (slot.count == 0) continue;
    const int64_t count = int64_t(slot.count);
    if (!replica.images.defined() || replica.images.size(0) != count) {
      replica.images =
          at::empty({count, options_.input.channels, options_.input.height, options_.input.width}, options_.dtype);
      replica.labels = at::empty({count}, at::kLong);
    }
    for (size_t i = 0; i < model.buffers().size(); ++i) model.buffers()[i].tensor.copy_(job_->start_buffers[i]);
    lap.to(time.other);
    (*job_->fill)(slot, replica.images, replica.labels);
    lap.to(time.data);

    at::Tensor loss;
    {
      const Autocast autocast(options_.precision);
      at::Tensor logits = model.forward(replica.images);
      if (options_.precision != Precision::kFp32) logits = logits.to(at::kFloat);
      loss = at::cross_entropy_loss(logits, replica.labels, {}, at::Reduction::Sum);
    }
    lap.to(time.forward);
    loss.div(step_samples).backward();
    const double slot_loss = loss.item<double>();
    loss_sum += slot_loss;
    samples += slot.count;
    replica.finite = replica.finite && std::isfinite(slot_loss);
    for (size_t i = 0; i < model.buffers().size(); ++i) replica.buffer_sums[i].add_(model.buffers()[i].tensor);
    ++replica.buffer_slots;
    lap.to(time.backward);
  }
  // A replica without samples in a short last step takes part with zeros.
  for (const tensor::NamedTensor& parameter : model.parameters())
    if (!parameter.tensor.grad().defined()) parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor.detach());
}

void Engine::reduce_part(Replica& replica) {
  const auto& parameters = replicas_[0]->model->parameters();
  const auto reduce = [&]<class T>(T) {
    std::vector<const T*> more(replicas_.size() - 1);
    for (const ParameterSlice& slice : parts_[replica.index]) {
      T* out = parameters[slice.parameter].tensor.grad().mutable_data_ptr<T>() + slice.begin;
      for (size_t i = 1; i < replicas_.size(); ++i)
        more[i - 1] =
            replicas_[i]->model->parameters()[slice.parameter].tensor.grad().const_data_ptr<T>() + slice.begin;
      const int64_t size = slice.end - slice.begin;
      if (!add_and_check(out, std::span<const T* const>(more), size)) replica.finite_sums = false;
      if (options_.clip_norm) replica.squares += sum_of_squares(out, size);
    }
  };
  options_.dtype == at::kDouble ? reduce(double()) : reduce(float());
}

void Engine::step_part(Replica& replica) {
  const at::NoGradGuard no_grad;
  double scale = 1;
  if (options_.clip_norm) {
    double squares = 0;
    for (const auto& other : replicas_) squares += other->squares;
    scale = std::min(1.0, *options_.clip_norm / (std::sqrt(squares) + 1e-6));  // torch.nn.utils.clip_grad_norm_
  }
  std::vector<at::Tensor> gradients;
  gradients.reserve(parts_[replica.index].size());
  for (const ParameterSlice& slice : parts_[replica.index]) {
    gradients.push_back(flat_slice(replicas_[0]->model->parameters()[slice.parameter].tensor.grad(), slice));
    if (scale != 1) gradients.back().mul_(scale);
  }
  if (!gradients.empty()) optimizer_->step(replica.index, gradients, job_->lr, job_->step + 1);
}

// The buffers after a step are the mean over its slots of what each slot made of the buffers before it.
void Engine::merge_buffers() {
  const at::NoGradGuard no_grad;
  if (job_->start_buffers.empty()) return;
  uint64_t slots = 0;
  for (const auto& replica : replicas_) slots += replica->buffer_slots;
  for (size_t i = 0; i < job_->start_buffers.size(); ++i) {
    const at::Tensor& committed = job_->start_buffers[i];
    if (!committed.is_floating_point()) {  // counters: one step is one step
      committed.copy_(replicas_[0]->model->buffers()[i].tensor);
      continue;
    }
    committed.copy_(replicas_[0]->buffer_sums[i]);
    for (size_t r = 1; r < replicas_.size(); ++r) committed.add_(replicas_[r]->buffer_sums[i]);
    if (slots > 1) committed.mul_(1.0 / double(slots));
  }
}

void Engine::share_buffers() {
  const at::NoGradGuard no_grad;
  for (const auto& replica : replicas_)
    for (size_t i = 0; i < job_->start_buffers.size(); ++i)
      replica->model->buffers()[i].tensor.copy_(job_->start_buffers[i]);
}

std::vector<tensor::NamedTensor> Engine::state() const {
  std::vector<tensor::NamedTensor> all;
  for (const tensor::NamedTensor& parameter : replicas_[0]->model->parameters())
    all.push_back({"model." + parameter.name, parameter.tensor.detach()});
  for (size_t i = 0; i < job_->start_buffers.size(); ++i)
    all.push_back({"model." + replicas_[0]->model->buffers()[i].name, job_->start_buffers[i]});
  for (const tensor::NamedTensor& item : optimizer_->state()) all.push_back({"optimizer." + item.name, item.tensor});
  return all;
}

void Engine::state_restored() { share_buffers(); }

}  // namespace skytrain::train
