// skytrain/data/progressive_resizing.h
//
// Training that begins with smaller pictures and ends with full ones, as fast.ai introduced it and MosaicML Composer's
// algorithm "Progressive Resizing" has it.

#pragma once
#include "skytrain/image/region.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

// The size at `progress` (part of the run's steps, [0, 1)): initial_scale of `full` up to delay_fraction, then growing
// evenly until the last finetune_fraction of the run, which has `full`. Multiples of size_increment, at least one of
// it, and never above `full`.
image::Size size_at(const recipe::ProgressiveResizingSpec& spec, const image::Size& full, double progress);

}  // namespace skytrain::data
