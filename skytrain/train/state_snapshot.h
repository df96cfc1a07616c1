// skytrain/train/state_snapshot.h
//
// The copy of an engine's state that a checkpoint is written from.

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "skytrain/checkpoint/file_image.h"
#include "skytrain/tensor/state.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

// Names in Engine::state() of the model's buffers: what is no weight.
std::set<std::string> buffer_names(const Engine& engine);

// No NaN and no infinity. Other than float32 and float64 is taken to be finite. REQUIRES: a dense tensor.
bool is_finite(const at::Tensor& tensor);

// Copies the tensors into `image`, in logical order, on the calling thread alone. Returns the name of the first one
// that is not finite, of those that must be; "": all are. One pass over the memory.
std::string copy_state(std::span<const tensor::NamedTensor> tensors, const std::set<std::string>& may_be_infinite,
                       uint64_t step, checkpoint::FileImage& image);

}  // namespace skytrain::train
