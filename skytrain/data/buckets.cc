#include "skytrain/data/buckets.h"

#include <algorithm>
#include <cmath>

#include "skytrain/base/error.h"
#include "skytrain/data/parallel.h"
#include "skytrain/image/picture.h"

namespace skytrain::data {
namespace {

// Of pictures whose sizes one task reads.
constexpr uint64_t kPicturesPerTask = 256;

double log_ratio(const image::Size& size) {
  return std::log(static_cast<double>(size.width) / static_cast<double>(size.height));
}

}  // namespace

size_t nearest_shape(const image::Size& picture, const std::vector<image::Size>& shapes) {
  const auto distance = [&](const image::Size& shape) { return std::abs(log_ratio(shape) - log_ratio(picture)); };
  return static_cast<size_t>(
      std::min_element(shapes.begin(), shapes.end(),
                       [&](const image::Size& a, const image::Size& b) { return distance(a) < distance(b); }) -
      shapes.begin());
}

image::Size shape_from_text(const std::string& text) {
  const size_t x = text.find('x');
  return {.width = std::stol(text.substr(x + 1)), .height = std::stol(text.substr(0, x))};
}

Buckets::Buckets(const EncodedPictures& pictures, const std::vector<image::Size>& shapes,
                 const std::function<bool()>& stop) {
  const uint64_t samples = pictures.info().samples, tasks = (samples - 1) / kPicturesPerTask + 1;
  std::vector<uint8_t> bucket_of(static_cast<size_t>(samples));  // a recipe has at most 64
  for_each_parallel(tasks, [&](uint64_t task) {
    if (stop()) throw Error(ErrorKind::kInterrupted, "", "stopped while the sizes of pictures were read");
    thread_local Scratch scratch;
    const uint64_t end = std::min(samples, (task + 1) * kPicturesPerTask);
    for (uint64_t i = task * kPicturesPerTask; i < end; ++i) {
      try {
        const std::span<const uint8_t> file = pictures.encoded(i, scratch);
        const image::Size size =
            image::upright_size(image::picture_size(file, scratch.path), pictures.orientation(file));
        bucket_of[static_cast<size_t>(i)] = static_cast<uint8_t>(nearest_shape(size, shapes));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kData) throw;
      }
      scratch.give_back_excess();
    }
  });
  for (const image::Size& shape : shapes) buckets_.push_back({shape, {}});
  for (uint64_t i = 0; i < samples; ++i) buckets_[bucket_of[static_cast<size_t>(i)]].samples.push_back(i);
  std::erase_if(buckets_, [](const Bucket& bucket) { return bucket.samples.empty(); });
}

std::vector<uint64_t> Buckets::samples() const {
  std::vector<uint64_t> counts;
  for (const Bucket& bucket : buckets_) counts.push_back(bucket.samples.size());
  return counts;
}

uint64_t Buckets::largest() const {
  const auto pixels = [](const Bucket& bucket) { return bucket.shape.width * bucket.shape.height; };
  return static_cast<uint64_t>(
      std::max_element(buckets_.begin(), buckets_.end(),
                       [&](const Bucket& a, const Bucket& b) { return pixels(a) < pixels(b); }) -
      buckets_.begin());
}

}  // namespace skytrain::data
