// skytrain/train/parameter_groups.h
//
// How the parameters are cut into parts for replicas, and which settings hold for which of them.

#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "skytrain/recipe/recipe.h"
#include "skytrain/tensor/state.h"

namespace skytrain::train {

// A part of one parameter: elements [begin, end) of its memory, in the order in which they lie there.
struct ParameterSlice {
  size_t parameter = 0;
  int64_t begin = 0, end = 0;
};

// Cuts all elements of `parameters`, laid end to end, into `parts` nearly equal parts; cuts lie on cache lines.
std::vector<std::vector<ParameterSlice>> cut_parameters(const std::vector<tensor::NamedTensor>& parameters, int parts);

// The flat view of a slice of `tensor`, which has no gaps, without autograd history.
at::Tensor flat_slice(const at::Tensor& tensor, const ParameterSlice& slice);

// What holds for one parameter.
struct ParameterSettings {
  double lr_scale = 1, weight_decay = 0;
  bool operator==(const ParameterSettings&) const = default;
};

// For each parameter, by the first of spec.groups whose pattern matches its name, as fnmatch(3) does; spec.no_decay
// takes the decay from parameters of at most one dimension. Throws Error(kRecipe) for a pattern
// that matches nothing: a slip of the pen would silently train what should be frozen.
std::vector<ParameterSettings> settings_of(const recipe::OptimizerSpec& spec,
                                           const std::vector<tensor::NamedTensor>& parameters);

}  // namespace skytrain::train
