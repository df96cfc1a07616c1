#include "skytrain/data/encoded_filler.h"

#include "skytrain/data/mix.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/resize.h"

namespace skytrain::data {

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
    }
  }
}

image::Region EncodedFiller::region(uint64_t epoch, uint64_t sample, const image::Size& size) const {
  if (!crop_) return {0, 0, size.width, size.height};
  KeyedRandom random(make_key(Stream::kResizedCrop, seed_, epoch, sample));
  return image::draw_region(size, *crop_, random);
}

void EncodedFiller::fill(uint64_t epoch, uint64_t sample, image::Layout layout, float* out, Scratch& scratch) const {
  const std::span<const uint8_t> file = pictures_.encoded(sample, scratch);
  const image::Size size = image::picture_size(file, scratch.path);
  image::OutputSpec output = output_;
  output.layout = layout;
  output.flip =
      mirror_probability_ > 0 && unit_interval(make_key(Stream::kFlip, seed_, epoch, sample)) < mirror_probability_;
  const image::ResizeSpec resize = crop_ ? image::ResizeSpec{.size = {pictures_.size(), pictures_.size()}}
                                         : image::resize_and_center_crop(size, pictures_.resize(), pictures_.size());
  image::decode_resized(file, scratch.path, region(epoch, sample, size), resize, output, out, scratch);
  scratch.give_back_excess();
}

}  // namespace skytrain::data
