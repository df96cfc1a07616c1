// skytrain/image/output.h
//
// How the pixels of a sample become elements of a batch.

#pragma once
#include <cstdint>

namespace skytrain::image {

enum class Layout {
  kChw,  // a batch of them is NCHW
  kHwc,  // a batch of them is NHWC (PyTorch: channels_last)
};

enum class ElementType { kFloat32, kBfloat16, kUint8 };

constexpr int64_t element_size(ElementType type) {
  return type == ElementType::kFloat32 ? 4 : type == ElementType::kBfloat16 ? 2 : 1;
}

struct OutputSpec {
  Layout layout = Layout::kChw;
  ElementType type = ElementType::kFloat32;
  // Of each channel, element = scale * pixel + offset in float32 (rounded after each operation), then rounded to the
  // type, to the nearest even. kUint8 takes pixels as they are.
  float scale[3] = {1.0f / 255, 1.0f / 255, 1.0f / 255};
  float offset[3] = {};
  bool flip = false;  // left and right
  // Write past the caches, where lines are aligned to 64 bytes: for batches that no cache would hold until they are
  // used. There it is faster, and leaves the caches to the decoding; elsewhere it is slower.
  bool past_cache = false;
};

// torchvision's ToTensor (pixel / 255) and Normalize(mean, std), in one: differs from them by rounding only.
OutputSpec normalized(const float (&mean)[3], const float (&std)[3]);

}  // namespace skytrain::image
