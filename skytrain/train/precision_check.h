// skytrain/train/precision_check.h
//
// What `precision: auto` means here: a short measurement of the run's own model, in time and in numbers.

#pragma once
#include <functional>
#include <string>

#include "skytrain/model/model.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

struct PrecisionChoice {
  Precision precision = Precision::kFp32;
  std::string reason;  // one clause with the figures
};

// bf16 where the processor multiplies it (AVX-512 BF16, AMX), a forward and backward pass of one slot is at least
// kLeastGain times as fast as in fp32 (by the processor's time), and its loss and gradient norm differ from fp32's by
// at most kMostDifference of themselves; otherwise fp32. The margin keeps noise of the clock from deciding between two
// that are alike. images [n, C, H, W], target: a slot. The model's gradients and buffers are as before when it returns.
inline constexpr double kLeastGain = 1.2, kMostDifference = 0.05;
// stop: as of train(); throws Stopped.
PrecisionChoice choose_precision(model::Model& model, const Loss& loss, const at::Tensor& images,
                                 const at::Tensor& target, const std::function<bool()>& stop = {});

}  // namespace skytrain::train
