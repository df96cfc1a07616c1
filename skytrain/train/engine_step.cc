// The work of one step on one replica.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/engine_parts.h"
#include "skytrain/train/loops.h"

namespace skytrain::train {

void Engine::run_step(Replica& replica) {
  replica.loss_sum = replica.squares = 0;
  replica.samples = 0;
  replica.finite = replica.finite_sums = true;
  replica.time = {};
  // A phase that throws leaves its error in the replica and a flag that stops the others at the next barrier: every
  // replica passes all barriers of a step, whatever happens.
  const auto guarded = [&replica](bool& ok, const auto& phase) { ok = guarded_by(replica, phase) && ok; };
  if (!guarded_by(replica, [&] { compute_gradients(replica); })) {
    replica.finite = false;
    job_->failed = true;
    if (on_failure_) on_failure_();
  }
  Lap lap;
  const auto meet = [&] {  // all replicas
    lap.to(replica.time.optimizer);
    job_->barrier.arrive_and_wait();
    lap.to(replica.time.other);
  };
  meet();               // all gradients are there
  bool healthy = true;  // of everybody's gradients; the same on all replicas
  for (const auto& other : replicas_) healthy = healthy && other->finite;
  healthy = healthy && !over_limit() && samples_of_step() > 0;
  if (healthy) guarded(replica.finite_sums, [&] { reduce_part(replica); });
  if (replica.index == 0 && before_update_) guarded(replica.finite_sums, before_update_);
  meet();  // all sums are there, and whether they are finite
  for (const auto& other : replicas_) healthy = healthy && other->finite_sums;
  bool stepped = true;
  if (healthy) guarded(stepped, [&] { step_part(replica); });
  if (optimizer_->needs_all_parts()) {
    meet();
    if (healthy && stepped) guarded(stepped, [&] { optimizer_->finish(replica.index, job_->settings); });
  }
  if (healthy && stepped) {
    guarded(stepped, [&] {
      average_part(replica);
      if (replica.index == 0) merge_buffers();
    });
  }
  note_peak(replica, peaks_.optimizer);
  meet();  // all parameters are new
}

void Engine::note_peak(const Replica& replica, uint64_t& phase) {
  if (replica.index != 0) return;
  phase = std::max(phase, tensor::memory_use().peak);
  tensor::reset_peak_memory();
}

uint64_t Engine::samples_of_step() const {
  uint64_t samples = 0;
  for (const auto& replica : replicas_) samples += replica->samples;
  return samples;
}

bool Engine::over_limit() const {
  double loss = 0;
  for (const auto& replica : replicas_) loss += replica->loss_sum;
  return loss > job_->settings.loss_limit * double(samples_of_step());
}

void Engine::compute_gradients(Replica& replica) {
  Lap lap;
  model::Model& model = *replica.model;
  model.set_training(true);
  for (const tensor::NamedTensor& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
  for (const at::Tensor& sum : replica.buffer_sums) sum.zero_();
  replica.buffer_weight = 0;
  lap.to(replica.time.other);
  const double step_samples = double(job_->slots->step_samples(job_->step));
  for (const data::Slot& slot : job_->slots->deal(job_->step, replica.index, options_.replicas))
    if (slot.count > 0 && !job_->failed) compute_slot(replica, slot, step_samples);
  // A replica without samples in a short last step takes part with zeros, as do frozen parameters.
  for (const tensor::NamedTensor& parameter : model.parameters())
    if (!parameter.tensor.grad().defined()) parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor.detach());
}

// Adds the slot's gradients (times the loss scale, over the step's samples), loss and buffers to the replica's.
void Engine::compute_slot(Replica& replica, const data::Slot& slot, double step_samples) {
  Lap lap;
  model::Model& model = *replica.model;
  const int64_t full = int64_t(slot.count);
  if (!replica.images.defined() || replica.images.size(0) != full) {
    replica.images.reset();  // freed before their successors take memory
    replica.target.reset();
    replica.images = at::empty({full, options_.input.channels, options_.input.height, options_.input.width},
                               options_.dtype, std::nullopt, std::nullopt, std::nullopt, options_.image_format);
    replica.target = options_.target_values == 0 ? at::empty({full}, at::kLong)
                                                 : at::empty({full, options_.target_values}, options_.dtype);
  }
  lap.to(replica.time.other);
  (*job_->fill)(slot, replica.images, replica.target);
  lap.to(replica.time.data);
  const int64_t count = replica.images.size(0);
  if (count == 0) return;
  for (size_t i = 0; i < model.buffers().size(); ++i) model.buffers()[i].tensor.copy_(job_->start_buffers[i]);

  if (options_.replicas == 1) seed_dropout(slot);
  at::Tensor loss;
  {
    const Autocast autocast(options_.precision);
    at::Tensor output = model.forward(replica.images.contiguous(options_.memory_format));
    if (options_.precision != Precision::kFp32) output = output.to(at::kFloat);
    loss = options_.loss.sum(output, replica.target);
  }
  note_peak(replica, peaks_.forward);
  lap.to(replica.time.forward);
  at::Tensor scaled = loss.div(step_samples);
  if (job_->loss_scale != 1) scaled = scaled.mul(job_->loss_scale);
  scaled.backward();
  const double slot_loss = loss.item<double>();
  replica.loss_sum += slot_loss;
  replica.samples += uint64_t(count);
  replica.finite = replica.finite && std::isfinite(slot_loss);
  // In slots of the step's first: equal slots weigh exactly 1.
  const double weight = double(count) / double(job_->slots->slot(job_->step, 0).count);
  for (size_t i = 0; i < model.buffers().size(); ++i)
    if (replica.buffer_sums[i].is_floating_point()) replica.buffer_sums[i].add_(model.buffers()[i].tensor, weight);
  replica.buffer_weight += weight;
  note_peak(replica, peaks_.backward);
  lap.to(replica.time.backward);
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
  // Gradients were divided by the step's samples; those that were left out are no part of the mean.
  double scale = double(job_->slots->step_samples(job_->step)) / double(samples_of_step()) / double(job_->loss_scale);
  if (options_.clip_norm) {
    double squares = 0;
    for (const auto& other : replicas_) squares += other->squares;
    // torch.nn.utils.clip_grad_norm_
    const double norm = std::sqrt(squares) * scale;
    scale *= std::min(1.0, *options_.clip_norm / (norm + 1e-6));
  }
  std::vector<at::Tensor> gradients;
  gradients.reserve(parts_[replica.index].size());
  for (const ParameterSlice& slice : parts_[replica.index]) {
    gradients.push_back(flat_slice(replicas_[0]->model->parameters()[slice.parameter].tensor.grad(), slice));
    if (scale == 1 && !options_.clip_value) continue;
    const auto rescale = [&]<class T>(T) {
      scale_and_clamp(gradients.back().mutable_data_ptr<T>(), gradients.back().numel(), scale,
                      options_.clip_value.value_or(std::numeric_limits<double>::infinity()));
    };
    options_.dtype == at::kDouble ? rescale(double()) : rescale(float());
  }
  if (!gradients.empty()) optimizer_->step(replica.index, gradients, job_->settings);
}

void Engine::average_part(Replica& replica) {
  if (averages_.empty()) return;
  const at::NoGradGuard no_grad;
  for (const ParameterSlice& slice : parts_[replica.index]) {
    const at::Tensor average = flat_slice(averages_[slice.parameter], slice);
    const at::Tensor weights = flat_slice(replicas_[0]->model->parameters()[slice.parameter].tensor.detach(), slice);
    if (job_->settings.step == 1) {
      average.copy_(weights);
    } else {
      average.lerp_(weights, 1 - *options_.ema);
    }
  }
}

// The buffers after a step are the mean over its slots, by their samples, of what each slot made of the buffers before
// it.
void Engine::merge_buffers() {
  const at::NoGradGuard no_grad;
  if (job_->start_buffers.empty()) return;
  double weight = 0;
  for (const auto& replica : replicas_) weight += replica->buffer_weight;
  for (size_t i = 0; i < job_->start_buffers.size(); ++i) {
    const at::Tensor& committed = job_->start_buffers[i];
    if (!committed.is_floating_point()) {  // counters: one step is one step, of whoever had samples
      for (const auto& replica : replicas_) {
        if (replica->buffer_weight == 0) continue;
        committed.copy_(replica->model->buffers()[i].tensor);
        break;
      }
      continue;
    }
    committed.copy_(replicas_[0]->buffer_sums[i]);
    for (size_t r = 1; r < replicas_.size(); ++r) committed.add_(replicas_[r]->buffer_sums[i]);
    if (weight != 1) committed.mul_(1 / weight);
  }
}

}  // namespace skytrain::train
