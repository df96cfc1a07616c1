// skytrain/data/mixing.h
//
// mixup (Zhang et al. 2018, arXiv 1710.09412) and cutmix (Yun et al. 2019, arXiv 1905.04899) of the samples of a slot.
//
// Sample i is mixed with sample i + 1 of its slot (the last with the first), as torchvision.transforms.v2.MixUp and
// CutMix do over a batch, with a share lambda of its own, drawn from Beta(alpha, alpha) by (seed, epoch, position): so
// a sample is mixed alike whoever computes the slot.

#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace skytrain::data {

struct PictureShape {
  int64_t channels = 0, height = 0, width = 0;
};

class Mixing {
 public:
  // alphas > 0; none: off. With both, each slot gets one of them at random.
  Mixing(std::optional<double> mixup, std::optional<double> cutmix, uint64_t seed);
  bool on() const { return mixup_ || cutmix_; }

  // images [n, C, H, W], changed in place; labels [n] in [0, classes); targets [n, classes] are written: the shares of
  // the classes. position: of the slot's first sample in the epoch. scratch: reused memory of the caller. Thread-safe.
  void apply(uint64_t epoch, uint64_t position, const PictureShape& shape, std::span<const int64_t> labels,
             int64_t classes, float* images, float* targets, std::vector<float>& scratch) const;

 private:
  std::optional<double> mixup_, cutmix_;
  uint64_t seed_;
};

// The n-th draw from Beta(alpha, alpha) under `key`, in [0, 1]. alpha > 0.
double symmetric_beta(double alpha, uint64_t key);

}  // namespace skytrain::data
