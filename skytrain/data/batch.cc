#include "skytrain/data/batch.h"

#include <algorithm>
#include <cmath>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/mix.h"

namespace skytrain::data {
namespace {

constexpr int64_t kMaxPad = 65536;

// A table instead of arithmetic: as fast (one load a pixel, from L1), and exactly the floats that dividing by 255,
// subtracting and dividing in float32 gives, as torchvision does it.
inline void look_up(const uint8_t* __restrict from, float* __restrict to, int64_t count,
                    const float* __restrict table) {
  for (int64_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

void apply_normalize(std::vector<float>& lookup, int64_t channels, const recipe::TransformSpec& transform,
                     const std::string& where) {
  const auto check_count = [&](const char* key, const std::vector<double>& values) {
    if (values.size() != 1 && values.size() != static_cast<size_t>(channels)) {
      throw Error(ErrorKind::kRecipe, where + "." + key,
                  str("has ", values.size(), " values, but the images have ", channels,
                      channels == 1 ? " channel" : " channels"),
                  "give one value a channel, or one for all");
    }
  };
  check_count("mean", transform.mean);
  check_count("std", transform.std);
  for (int64_t c = 0; c < channels; ++c) {
    const size_t at = static_cast<size_t>(c);
    const float mean = static_cast<float>(transform.mean[transform.mean.size() == 1 ? 0 : at]);
    const float std = static_cast<float>(transform.std[transform.std.size() == 1 ? 0 : at]);
    if (!std::isfinite(mean)) throw Error(ErrorKind::kRecipe, where + ".mean", "is not finite");
    if (!std::isfinite(std) || std <= 0) {
      throw Error(ErrorKind::kRecipe, where + ".std", "must be above 0 (and finite in float32)");
    }
    for (size_t value = 0; value < 256; ++value) {
      float& entry = lookup[at * 256 + value];
      entry = (entry - mean) / std;
    }
  }
}

}  // namespace

BatchFiller::BatchFiller(const Dataset& dataset, const std::vector<recipe::TransformSpec>& transforms, uint64_t seed,
                         bool training)
    : dataset_(dataset), seed_(seed) {
  const int64_t channels = dataset.info().channels;
  lookup_.resize(static_cast<size_t>(channels) * 256);
  for (size_t i = 0; i < lookup_.size(); ++i) lookup_[i] = static_cast<float>(i % 256) / 255.0f;
  bool cropped = false;
  for (size_t i = 0; i < transforms.size(); ++i) {
    const recipe::TransformSpec& transform = transforms[i];
    const std::string where = str("data.transforms[", i, "].", transform.name);
    if (transform.name == "normalize") {
      apply_normalize(lookup_, channels, transform, where);
    } else if (transform.name == "pad_crop") {
      if (transform.pad < 0 || transform.pad > kMaxPad) {
        throw Error(ErrorKind::kRecipe, where + ".pad", str("is ", transform.pad, ", expected 0..", kMaxPad));
      }
      if (cropped)
        throw Error(ErrorKind::kRecipe, where, "appears twice", "one pad_crop with a larger pad does the same");
      cropped = true;
      if (training) pad_ = transform.pad;
    } else {
      const std::vector<std::string> known = {"normalize", "pad_crop"};
      throw Error(ErrorKind::kRecipe, str("data.transforms[", i, "]"),
                  str("unknown transform \"", printable(transform.name), "\"", did_you_mean(transform.name, known)),
                  "known: " + join(known, ", "));
    }
  }
}

void BatchFiller::fill(uint64_t epoch, std::span<const uint64_t> samples, float* images, int64_t* labels) const {
  const DatasetInfo& info = dataset_.info();
  const int64_t height = info.height, width = info.width, plane = height * width;
  for (const uint64_t sample : samples) {
    const uint8_t* pixels = dataset_.pixels(sample);
    *labels++ = dataset_.label(sample);
    // How far the crop lies from the image itself, in [-pad, pad].
    int64_t down = 0, right = 0;
    if (pad_ > 0) {
      const uint64_t bits = make_key(Stream::kCrop, seed_, epoch, sample);
      const uint64_t places = static_cast<uint64_t>(2 * pad_ + 1);
      down = static_cast<int64_t>(below(static_cast<uint32_t>(bits), places)) - pad_;
      right = static_cast<int64_t>(below(static_cast<uint32_t>(bits >> 32), places)) - pad_;
    }
    for (int64_t c = 0; c < info.channels; ++c, pixels += plane, images += plane) {
      const float* table = lookup_.data() + c * 256;
      if (down == 0 && right == 0) {
        look_up(pixels, images, plane, table);
        continue;
      }
      // Padding has pixel value 0, which normalisation then maps like any other.
      const int64_t left_pad = std::clamp<int64_t>(-right, 0, width);
      const int64_t right_pad = std::clamp<int64_t>(right, 0, width);
      const int64_t inside = width - left_pad - right_pad;  // one of the two pads is 0
      for (int64_t y = 0; y < height; ++y) {
        float* out = images + y * width;
        const int64_t from = y + down;
        if (from < 0 || from >= height) {
          std::fill_n(out, width, table[0]);
          continue;
        }
        std::fill_n(out, left_pad, table[0]);
        look_up(pixels + from * width + right_pad, out + left_pad, inside, table);
        std::fill_n(out + left_pad + inside, right_pad, table[0]);
      }
    }
  }
}

}  // namespace skytrain::data
