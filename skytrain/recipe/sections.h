// skytrain/recipe/sections.h
//
// The declaration of every key of a recipe. Built at the first call.

#pragma once
#include "skytrain/recipe/recipe.h"
#include "skytrain/recipe/section.h"

namespace skytrain::recipe {

const Section<Recipe>& recipe_section();

}  // namespace skytrain::recipe
