// skytrain/train/shape_check.h
//
// Whether a model takes pictures of every shape that a run will show it: told before the first step, not when the shape
// first comes.

#pragma once
#include <vector>

#include "skytrain/image/region.h"
#include "skytrain/model/model.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

// Throws Error(kRecipe) naming data.buckets or data.progressive_resizing, whichever the shape is from, and
// tensor::OutOfMemory.
void check_shapes(model::Model& model, const recipe::Recipe& recipe, const model::InputShape& input,
                  const std::vector<image::Size>& shapes);

}  // namespace skytrain::train
