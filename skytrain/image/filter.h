// skytrain/image/filter.h
//
// Which pixels of a line become which pixel of a scaled line, with which weights: Pillow's antialiasing
// (Image.resize(…, BILINEAR or BICUBIC), ImagingResample), which torchvision's resize(antialias=True) follows. A filter
// is widened by the reduction, and only pixels of the line count. Thread-safe for different objects.

#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace skytrain::image {

enum class Filter {
  kBilinear,  // a triangle, one pixel to each side
  kBicubic,   // Keys' cubic with a = -1/2, two pixels to each side
};

// One direction of a resize: pixels begin..begin+count-1 of a line of `from` pixels that is scaled to `to`.
struct Axis {
  Filter filter = Filter::kBilinear;
  int64_t from = 0, to = 0;
  int64_t begin = 0, count = 0;
  bool mirrored = false;  // the pixels come out in the opposite order
  bool operator==(const Axis&) const = default;
};

// Weights are of 16 bits: round(weight * 2^precision), with as many bits as fit (14 for a weight of 1), rounded so that
// those of a pixel sum to 2^precision: one colour stays one colour.
class Taps16 {
 public:
  // Outputs that the column kernels make at once, and pixels that they take at once.
  static constexpr int64_t kBlock = 4;

  // Does nothing when the axis is that of the last call.
  void set(const Axis& axis);

  int64_t count() const { return axis_.count; }
  int precision() const { return precision_; }

  // The first pixel that any output needs, and the one after the last.
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

  // Of output i: its pixels first..first+used-1 of the line, less begin(), with `stride` weights of which the others
  // are 0.
  int64_t first(int64_t i) const { return first_[static_cast<size_t>(i)] - begin_; }
  int64_t used(int64_t i) const { return used_[static_cast<size_t>(i)]; }
  const int16_t* weights(int64_t i) const { return weights_.data() + i * stride_; }
  int64_t longest() const { return longest_; }  // max of used()

  // The same for the column kernels, in blocks of kBlock outputs (the last is filled up): kBlock places where reading
  // begins, in pixels, less begin(); and groups() times kBlock times kBlock weights, of each output's next four pixels.
  // Reading goes up to three pixels beyond end().
  const int32_t* block_starts(int64_t block) const { return block_starts_.data() + block * kBlock; }
  const int16_t* block_weights(int64_t block) const {
    return block_weights_.data() + block * groups_ * kBlock * kBlock;
  }
  int64_t blocks() const { return (axis_.count + kBlock - 1) / kBlock; }
  int64_t groups() const { return groups_; }
  void set_blocks();  // to be called after set() where they are used

 private:
  Axis axis_;
  int precision_ = 0;
  int64_t begin_ = 0, end_ = 0, stride_ = 0, longest_ = 0, groups_ = 0;
  bool blocks_set_ = false;
  std::vector<int32_t> first_, used_, block_starts_;
  std::vector<int16_t> weights_, block_weights_;
  std::vector<float> exact_, spare_;
};

}  // namespace skytrain::image
