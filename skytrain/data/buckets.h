// skytrain/data/buckets.h
//
// Pictures by their shape: each belongs to the bucket whose aspect ratio is nearest to its own, so that a batch has one
// shape and little is cut off.

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/image/region.h"

namespace skytrain::data {

class Buckets {
 public:
  // Reads the size of each picture, several at once; one that can't be told (it will turn out to be damaged) goes to
  // the first bucket. shapes: not empty; those without pictures are left out. stop: true ends it with
  // Error(kInterrupted). Throws Error(kEnvironment) for disk trouble.
  Buckets(const EncodedPictures& pictures, const std::vector<image::Size>& shapes, const std::function<bool()>& stop);

  size_t count() const { return buckets_.size(); }
  const image::Size& shape(uint64_t bucket) const { return buckets_[bucket].shape; }
  std::vector<uint64_t> samples() const;  // of each bucket
  // The sample at `place` of a bucket, in ascending order.
  uint64_t sample(uint64_t bucket, uint64_t place) const { return buckets_[bucket].samples[place]; }
  // The bucket of the most pixels.
  uint64_t largest() const;

 private:
  struct Bucket {
    image::Size shape;
    std::vector<uint64_t> samples;
  };
  std::vector<Bucket> buckets_;
};

// Which of `shapes` has the aspect ratio nearest to that of `picture`, as a factor; the first of equal ones.
size_t nearest_shape(const image::Size& picture, const std::vector<image::Size>& shapes);

// "192x256" (height, width), as a recipe has them.
image::Size shape_from_text(const std::string& text);

}  // namespace skytrain::data
