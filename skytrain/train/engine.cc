#include "skytrain/train/engine.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <future>
#include <mutex>
#include <system_error>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/mix.h"
#include "skytrain/data/read_ahead.h"
#include "skytrain/train/engine_parts.h"

namespace skytrain::train {
TimeSplit& TimeSplit::operator+=(const TimeSplit& more) {
  data += more.data;
  forward += more.forward;
  backward += more.backward;
  optimizer += more.optimizer;
  other += more.other;
  return *this;
}

namespace {

// Kernels of convolutions take their weights in the memory format of their images: kept in another one, they would be
// copied in each forward and backward pass, and their gradients too.
void store_weights_in(at::MemoryFormat format, model::Model& model) {
  if (format == at::MemoryFormat::Contiguous) return;
  for (const tensor::NamedTensor& parameter : model.parameters())
    if (parameter.tensor.dim() == 4) parameter.tensor.set_data(parameter.tensor.variable_data().contiguous(format));
}

}  // namespace

Engine::Engine(const recipe::ModelSpec& model, const recipe::OptimizerSpec& optimizer, uint64_t seed,
               const Options& options, std::unique_ptr<model::Model> built)
    : options_(options), seed_(seed), scaler_(options.scaler), job_(std::make_unique<Job>(options.replicas)) {
  at::set_num_threads(options_.threads_per_replica);
  for (int i = 0; i < options_.replicas; ++i) {
    auto replica = std::make_unique<Replica>();
    replica->index = i;
    // Replicas beyond the first take its parameters: drawing them would be for nothing.
    replica->model =
        i == 0 && built
            ? std::move(built)
            : model::build_model(model, options_.input, i == 0 ? at::detail::createCPUGenerator(seed) : at::Generator(),
                                 options_.dtype);
    replica->model->set_activation_checkpointing(options_.activation_checkpointing);
    if (i == 0)
      store_weights_in(options_.memory_format, *replica->model);
    else
      model::share_parameters(*replicas_[0]->model, *replica->model);
    for (const tensor::NamedTensor& buffer : replica->model->buffers())
      replica->buffer_sums.push_back(at::zeros_like(buffer.tensor));
    replicas_.push_back(std::move(replica));
  }
  for (const tensor::NamedTensor& buffer : replicas_[0]->model->buffers())
    job_->start_buffers.push_back(buffer.tensor.clone());
  parts_ = cut_parameters(replicas_[0]->model->parameters(), options_.replicas);
  optimizer_ = build_optimizer(optimizer, replicas_[0]->model->parameters(), parts_);
  const std::vector<ParameterSettings> settings = settings_of(optimizer, replicas_[0]->model->parameters());
  for (const auto& replica : replicas_)
    for (size_t i = 0; i < settings.size(); ++i)  // frozen ones cost no backward pass
      if (settings[i].lr_scale == 0) replica->model->parameters()[i].tensor.set_requires_grad(false);
  if (options_.ema)
    for (const tensor::NamedTensor& parameter : replicas_[0]->model->parameters())
      averages_.push_back(parameter.tensor.detach().clone());
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
      guarded_by(replica, [&] { (*job_->work)(index); });
      job_->barrier.arrive_and_wait();
    }
  }
}

void Engine::for_each_replica(const std::function<void(int)>& work) {
  job_->kind = Job::Kind::kFunction;
  job_->work = &work;
  job_->barrier.arrive_and_wait();
  guarded_by(*replicas_[0], [&] { work(0); });
  job_->barrier.arrive_and_wait();
  rethrow_failure();
}

void Engine::rethrow_failure() {
  const auto is_consequence = [](const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const data::ReadAhead::Cancelled&) {
      return true;
    } catch (...) {
      return false;
    }
  };
  std::exception_ptr first;
  for (const auto& replica : replicas_)
    if (std::exception_ptr failure = std::exchange(replica->failure, nullptr);
        failure && (!first || is_consequence(first)))
      first = failure;
  if (first) std::rethrow_exception(first);
}

// Modules of others draw from LibTorch's default generator, which is one for all threads: what a slot draws is a
// function of the seed and its place in the run, as long as one replica draws at a time.
void Engine::seed_dropout(const data::Slot& slot) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(data::make_key(data::Stream::kDropout, seed_, job_->step, slot.index));
}

StepResult Engine::step(const data::Slots& slots, uint64_t step, const StepSettings& settings, const FillSlot& fill) {
  const bool scaled = options_.precision == Precision::kFp16;
  job_->kind = Job::Kind::kStep;
  job_->slots = &slots;
  job_->step = step;
  job_->settings = settings;
  job_->loss_scale = scaled ? scaler_.scale() : 1;
  job_->fill = &fill;
  job_->failed = false;
  const double begin = steady_seconds();
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
  result.gradient_norm = std::sqrt(squares) / double(job_->loss_scale);
  if (scaled) {
    result.overflowed = !result.finite && !scaler_.hopeless();
    scaler_.update(!result.finite);
  }
  result.over_limit = result.finite && over_limit();
  result.time = replicas_[0]->time;
  result.time.other += steady_seconds() - begin - result.time.total();
  return result;
}

void Engine::exchange_weights() {
  if (averages_.empty()) return;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor weights = replicas_[0]->model->parameters()[i].tensor.variable_data();
    for (const auto& replica : replicas_) replica->model->parameters()[i].tensor.set_data(averages_[i].variable_data());
    averages_[i] = weights;
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
  for (size_t i = 0; i < averages_.size(); ++i)
    all.push_back({"ema." + replicas_[0]->model->parameters()[i].name, averages_[i]});
  return all;
}

void Engine::state_restored() { share_buffers(); }

}  // namespace skytrain::train
