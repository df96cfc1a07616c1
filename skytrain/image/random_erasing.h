// skytrain/image/random_erasing.h
//
// Random erasing (Zhong et al. 2017, arXiv 1708.04896) of a sample that has been written, as torchvision v2's
// RandomErasing after Normalize. Thread-safe for different samples.

#pragma once
#include "skytrain/base/mix.h"
#include "skytrain/image/output.h"
#include "skytrain/image/region.h"

namespace skytrain::image {

struct RandomErasing {
  double probability = 0.5;
  double min_area = 0.02, max_area = 0.33;  // of the sample's
  double min_ratio = 0.3, max_ratio = 3.3;  // height to width, drawn from the logarithm
  bool noise = false;                       // a normally distributed number for each element, instead of `value`
  float value[3] = {};                      // of each channel, as elements (normalised)
};

// What is erased: nothing (a width of 0) in 1 - probability of the cases, and when ten tries of area and ratio do not
// fit; otherwise at a uniform place. The sides are smaller than the sample's.
Region draw_erasure(const RandomErasing& erasing, const Size& sample, KeyedRandom& random);

// Writes the region of a sample of this size, layout and type. random: for the noise. REQUIRES a type of floats.
void erase(const Region& region, const RandomErasing& erasing, const Size& sample, const OutputSpec& output,
           KeyedRandom& random, void* elements);

}  // namespace skytrain::image
