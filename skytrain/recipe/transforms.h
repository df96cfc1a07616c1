// skytrain/recipe/transforms.h
//
// `data.transforms`: a list in which each element is a mapping with one key, the transform's name:
//   - normalize: {mean: [0.1307], std: [0.3081]}

#pragma once
#include "skytrain/recipe/recipe.h"
#include "skytrain/recipe/section.h"

namespace skytrain::recipe {

void add_transforms(Section<DataSpec>& data);

}  // namespace skytrain::recipe
