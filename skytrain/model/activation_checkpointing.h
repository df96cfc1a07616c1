// skytrain/model/activation_checkpointing.h
//
// Memory for time: a block whose activations are forgotten after the forward pass and computed again in the backward
// pass (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
//
// Gradients and buffers are bit-equal to those of the plain block, under these rules:
//  - Parameters are inputs of the operator: their gradients go the usual way, through the outer backward pass, so that
//    hooks, accumulation and torch::autograd::grad work as ever, and each replica touches its own leaves only.
//  - The block runs again under the autocast state of its forward pass, with autocast's cache off both times: a cast
//    that was cached without gradients must not be found by anybody else. (A parameter that a block uses twice gets its
//    two gradients added in float32 then, and not in bfloat16.)
//  - A block that draws random numbers names the generator, which is set back for the second run and then forward
//  again.
//  - The second run leaves running statistics alone: layers that have some ask is_recomputing().

#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

namespace skytrain::model {

// A function of its argument, `parameters` and constants. It must live until the backward pass has run.
using Block = std::function<at::Tensor(const at::Tensor&)>;

// block(x), keeping only x for the backward pass. parameters: all leaves that the block uses. generator: what the block
// draws from, used by no other thread meanwhile; none: it draws nothing. Without gradients it is just block(x).
at::Tensor run_checkpointed(const Block& block, const at::Tensor& x, at::TensorList parameters,
                            const std::optional<at::Generator>& generator = std::nullopt);

// True on a thread that is running a block for the second time.
bool is_recomputing();

}  // namespace skytrain::model
