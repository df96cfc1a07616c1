// skytrain/tensor/state.h
//
// Tensors <-> the bytes, dtypes and shapes that checkpoints hold.

#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/load.h"

namespace skytrain::tensor {

// A tensor with the name under which checkpoints and PyTorch's state_dict know it ("conv1.weight").
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Throws Error(kInternal) for a dtype that safetensors can't hold.
checkpoint::Dtype to_dtype(at::ScalarType type);

at::ScalarType to_scalar_type(checkpoint::Dtype dtype);
std::string shape_text(at::IntArrayRef shape);  // "[64, 3, 7, 7]"

// The tensor itself when it is contiguous, else a contiguous copy, in memory that memory_budget.h does not count.
at::Tensor in_logical_order(const at::Tensor& tensor);

// Name, dtype and shape without the bytes.
checkpoint::NamedArray array_like(const std::string& name, const at::Tensor& tensor);

// Borrows the tensor's memory. REQUIRES: CPU, contiguous; the tensor outlives the result unchanged.
checkpoint::NamedArray as_array(const std::string& name, const at::Tensor& tensor);

// Where the bytes of `array`, the tensor `name` of a file, go to become the content of `tensor`: its own memory, or
// some other from which they are copied when they are there, if its elements lie in another order. Throws Error(kData)
// naming the tensor when it differs in dtype or shape. REQUIRES: CPU; the tensor outlives the result.
checkpoint::Destination destination_in(const std::string& name, const checkpoint::ArrayInfo& array,
                                       const at::Tensor& tensor);

}  // namespace skytrain::tensor
