// skytrain/image/kernels.h
//
// The inner loops of resizing and normalising, for each level of x86-64's vector instructions. All levels give the same
// bits. Thread-safe.

#pragma once
#include <cstdint>
#include <span>

#include "skytrain/image/filter.h"
#include "skytrain/image/output.h"

namespace skytrain::image {

struct Kernels {
  const char* name;

  // Scales a line of pixels of 4 bytes. line: from pixel taps.begin() on, readable up to 3 pixels beyond taps.end().
  // out: 4*count bytes, with room for a multiple of 16. REQUIRES taps.set_blocks().
  void (*scale_line)(const uint8_t* line, const Taps16& taps, uint8_t* out);

  // Sums `count` lines by weight: out[i] = sum(weights[k] * lines[k][i]) / 2^precision, rounded and cut to 8 bits.
  // bytes: a multiple of kLineAlignment, as all lines have them.
  void (*blend_lines)(const uint8_t* const* lines, const int16_t* weights, int64_t count, int precision, int64_t bytes,
                      uint8_t* out);

  // Writes a line of pixels of 4 bytes as `spec` says, but for the flip. out: the line's first element. plane: elements
  // from one channel to the next, of Layout::kChw.
  void (*write_line)(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out);
};

inline constexpr int64_t kLineAlignment = 64;

// Those that this machine runs, the fastest last. The first uses no vector instructions.
std::span<const Kernels* const> runnable_kernels();
// The fastest.
const Kernels& best_kernels();

extern const Kernels kScalarKernels, kSse41Kernels, kAvx2Kernels, kAvx512Kernels;

}  // namespace skytrain::image
