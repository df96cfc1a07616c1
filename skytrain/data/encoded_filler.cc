#include "skytrain/data/encoded_filler.h"

#include <algorithm>
#include <utility>

#include "skytrain/data/mix.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/resize.h"

namespace skytrain::data {
namespace {

// A sample of so many bytes and more leaves no batch in a second-level cache.
constexpr size_t kBytesPastCache = 64 << 10;

// torchvision's rules: factors from 1 - x (not below 0) to 1 + x, the hue from -x to x.
image::ColorJitter color_jitter(const recipe::TransformSpec& transform) {
  image::ColorJitter jitter;
  const auto around = [](double change, float(&bounds)[2]) {
    bounds[0] = static_cast<float>(std::max(0.0, 1 - change));
    bounds[1] = static_cast<float>(1 + change);
  };
  around(transform.brightness, jitter.brightness);
  around(transform.contrast, jitter.contrast);
  around(transform.saturation, jitter.saturation);
  jitter.hue[0] = static_cast<float>(-transform.hue);
  jitter.hue[1] = static_cast<float>(transform.hue);
  return jitter;
}

}  // namespace

EncodedFiller::EncodedFiller(const EncodedPictures& pictures, const std::vector<recipe::TransformSpec>& transforms,
                             uint64_t seed, bool training)
    : pictures_(pictures), seed_(seed) {
  for (const recipe::TransformSpec& transform : transforms) {
    if (transform.name == "normalize") {
      for (size_t c = 0; c < 3; ++c) {
        const auto of_channel = [c](const std::vector<double>& values) {
          return static_cast<float>(values[values.size() == 1 ? 0 : c]);
        };
        output_.scale[c] /= of_channel(transform.std);
        output_.offset[c] = (output_.offset[c] - of_channel(transform.mean)) / of_channel(transform.std);
      }
    } else if (transform.name == "flip" && training) {
      mirror_probability_ = transform.p;
    } else if (transform.name == "random_resized_crop" && training) {
      image::RandomResizedCrop& crop = crop_.emplace();
      if (transform.scale.size() == 2) crop.min_area = transform.scale[0], crop.max_area = transform.scale[1];
      if (transform.ratio.size() == 2) crop.min_ratio = transform.ratio[0], crop.max_ratio = transform.ratio[1];
    } else if (transform.name == "color_jitter" && training) {
      changes_.emplace_back(color_jitter(transform));
    } else if (transform.name == "rand_augment" && training) {
      changes_.emplace_back(image::RandAugment{.operations = static_cast<int>(transform.ops),
                                               .magnitude = static_cast<int>(transform.magnitude)});
    } else if (transform.name == "random_erasing" && training) {
      image::RandomErasing& erasing = erasing_.emplace();
      erasing.probability = transform.p;
      if (transform.scale.size() == 2) erasing.min_area = transform.scale[0], erasing.max_area = transform.scale[1];
      if (transform.ratio.size() == 2) erasing.min_ratio = transform.ratio[0], erasing.max_ratio = transform.ratio[1];
    }
  }
}

image::Region EncodedFiller::region(uint64_t epoch, uint64_t sample, const image::Size& size) const {
  if (!crop_) return {0, 0, size.width, size.height};
  KeyedRandom random(make_key(Stream::kResizedCrop, seed_, epoch, sample));
  return image::draw_region(size, *crop_, random);
}

void EncodedFiller::fill(uint64_t epoch, uint64_t sample, const image::Size& shape, image::Layout layout, float* out,
                         Scratch& scratch) const {
  const std::span<const uint8_t> file = pictures_.encoded(sample, scratch);
  const image::Orientation orientation = pictures_.orientation(file);
  const image::Size size = image::upright_size(image::picture_size(file, scratch.path), orientation);
  image::OutputSpec output = output_;
  output.layout = layout;
  output.flip =
      mirror_probability_ > 0 && unit_interval(make_key(Stream::kFlip, seed_, epoch, sample)) < mirror_probability_;
  const image::Size cover = {shape.width * pictures_.resize() / pictures_.size(),
                             shape.height * pictures_.resize() / pictures_.size()};
  const image::ResizeSpec resize =
      crop_ ? image::ResizeSpec{.size = shape} : image::cover_and_center_crop(size, cover, shape);
  const image::Size kept = image::output_size(resize);
  output.past_cache = sizeof(float) * static_cast<size_t>(3 * kept.width * kept.height) >= kBytesPastCache;
  const image::Region seen = region(epoch, sample, size);
  if (changes_.empty()) {
    image::decode_resized(file, scratch.path, seen, resize, output, out, scratch, orientation);
  } else {
    uint8_t* const rgbx = image::decode_resized_pixels(file, scratch.path, seen, resize,
                                                       std::exchange(output.flip, false), scratch, orientation);
    change_pixels(epoch, sample, {rgbx, kept.width, kept.height}, scratch);
    image::write_pixels(rgbx, kept, output, out);
  }
  if (erasing_) {
    KeyedRandom random(make_key(Stream::kErasing, seed_, epoch, sample));
    const image::Region erased = image::draw_erasure(*erasing_, kept, random);
    if (erased.width > 0) image::erase(erased, *erasing_, kept, output, random, out);
  }
  scratch.give_back_excess();
}

void EncodedFiller::change_pixels(uint64_t epoch, uint64_t sample, const image::Pixels& pixels,
                                  Scratch& scratch) const {
  KeyedRandom color(make_key(Stream::kColor, seed_, epoch, sample));
  KeyedRandom augment(make_key(Stream::kAugment, seed_, epoch, sample));
  for (const auto& change : changes_) {
    if (const auto* const jitter = std::get_if<image::ColorJitter>(&change)) {
      image::change_color(pixels, image::draw_color_change(*jitter, color));
    } else {
      image::rand_augment(pixels, std::get<image::RandAugment>(change), augment, scratch.narrowed);
    }
  }
}

}  // namespace skytrain::data
