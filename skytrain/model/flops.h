// skytrain/model/flops.h
//
// How much arithmetic a model does, counted by watching one forward pass: so it holds for any model, also for one that
// comes as TorchScript or as a plug-in.

#pragma once
#include <cstdint>

#include "skytrain/model/model.h"

namespace skytrain::model {

// Floating-point operations of a forward pass of one sample: twice the multiply-adds of its convolutions, matrix
// products and attention, which is what others count too (fvcore counts the multiply-adds). Element-wise work (batch
// norm, activations, pooling, biases) is left out. Runs the model once in evaluation mode on zeros; its state stays as
// it was. Throws what forward() throws.
int64_t count_flops(Model& model, const InputShape& input);

}  // namespace skytrain::model
