// skytrain/data/input_bench.h
//
// How fast the input pipeline makes batches of a set of pictures, with nobody training on them.

#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

struct InputBenchOptions {
  uint64_t batch = 64;
  double seconds = 10;  // measured, after one batch a thread that warms up
  uint64_t images = 0;  // ends earlier, after so many; 0: does not
  int threads = 1;
  uint64_t seed = 0;
};

struct InputBenchResult {
  uint64_t images = 0;
  double seconds = 0;      // on the wall
  double cpu_seconds = 0;  // of all threads
  // Shares of the time of one thread, from up to a second of single samples afterwards: the file from the disk or its
  // cache; entropy decoding, inverse transforms and colours of what is seen; scaling, normalising and writing.
  double read_share = 0, decode_share = 0, resize_share = 0;
};

// transforms: as of BatchFiller, in training. stop: polled between batches. Throws as BatchFiller.
InputBenchResult bench_input(const EncodedPictures& pictures, const std::vector<recipe::TransformSpec>& transforms,
                             const InputBenchOptions& options, const std::function<bool()>& stop);

}  // namespace skytrain::data
