// skytrain/train/state_snapshot.h
//
// The copy of an engine's state that a checkpoint is written from.

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skytrain/checkpoint/file_image.h"
#include "skytrain/tensor/state.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

// Makes room in `image` for the tensors, and changes nothing in it.
void reserve_for_state(std::span<const tensor::NamedTensor> tensors, checkpoint::FileImage& image);
// Copies the tensors into `image`, in logical order, on the calling thread alone.
void copy_state(std::span<const tensor::NamedTensor> tensors, uint64_t step, checkpoint::FileImage& image);
// The other way: what a former process copied into the memory behind `image`. False, and the tensors as they were, when
// it is not the file that `described` tells of, or not of these tensors.
bool copy_state_back(checkpoint::FileImage& image, const checkpoint::Manifest& described,
                     std::span<const tensor::NamedTensor> tensors);

// One of the copy's arrays, of float32 or float64, that must be finite.
struct ArrayToCheck {
  size_t index = 0;
  std::string name;
  at::ScalarType dtype = at::kFloat;
};
// All of Engine::state() but buffers: a mask holds infinities.
std::vector<ArrayToCheck> arrays_to_check(std::span<const tensor::NamedTensor> tensors, const Engine& engine);
// The name of the first one that holds NaN or an infinity; "": none does.
std::string not_finite(std::span<const ArrayToCheck> arrays, const checkpoint::FileImage& image);

}  // namespace skytrain::train
