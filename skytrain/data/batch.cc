#include "skytrain/data/batch.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

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

inline void look_up_mirrored(const uint8_t* __restrict from, float* __restrict to, int64_t count,
                             const float* __restrict table) {
  for (int64_t i = 0; i < count; ++i) to[count - 1 - i] = table[from[i]];
}

void check_count(const DatasetInfo& info, const std::string& where, const std::vector<double>& values) {
  if (values.size() == 1 || values.size() == static_cast<size_t>(info.channels)) return;
  const bool pictures = info.elements == Elements::kUint8;
  const std::string unit = pictures ? "channel" : "feature";
  throw Error(ErrorKind::kRecipe, where,
              str("has ", values.size(), " values, but the ", pictures ? "images" : "samples", " have ", info.channels,
                  " ", unit, info.channels == 1 ? "" : "s"),
              "give one value a " + unit + ", or one for all");
}

void check_pictures(const DatasetInfo& info, const std::string& where) {
  if (info.elements == Elements::kUint8) return;
  throw Error(ErrorKind::kRecipe, where, "is for pictures, but the samples are rows of features", "remove it");
}

// Transforms that begin with the file of a picture.
const std::set<std::string> kOfFiles = {"random_resized_crop", "color_jitter", "rand_augment", "random_erasing"};

void check_files_of_pictures(const Dataset& dataset, const std::string& name, const std::string& where) {
  if (dataset.encoded_pictures() != nullptr) return;
  throw Error(ErrorKind::kRecipe, where, str("is for files of pictures, and the data are ", dataset.info().format),
              name == "random_resized_crop" ? "use pad_crop, or a folder of pictures"
                                            : "remove it, or use a folder of pictures");
}

// A sample is cut out, then its pixels are changed, then they are normalised, then a part is erased: another order
// would be another result.
void check_order(const std::vector<recipe::TransformSpec>& transforms) {
  const auto stage = [](const std::string& name) {
    if (name == "random_resized_crop" || name == "pad_crop") return 1;
    if (name == "color_jitter" || name == "rand_augment") return 2;
    if (name == "normalize") return 3;
    return name == "random_erasing" ? 4 : 0;  // flip goes anywhere
  };
  std::string last;
  bool padded = false, of_files = false;
  for (size_t i = 0; i < transforms.size(); ++i) {
    const std::string& name = transforms[i].name;
    const std::string where = str("data.transforms[", i, "].", name);
    if (stage(name) > 0 && !last.empty() && stage(name) < stage(last))
      throw Error(ErrorKind::kRecipe, where, "comes after " + last,
                  "the order is: a crop, color_jitter and rand_augment, normalize, random_erasing");
    if (stage(name) > 0) last = name;
    padded = padded || name == "pad_crop";
    of_files = of_files || kOfFiles.contains(name);
    if (padded && of_files)
      throw Error(ErrorKind::kRecipe, where, "does not go with another transform of the list",
                  "pad_crop is for pictures of one size; beside it, of these: normalize, flip");
  }
}

}  // namespace

BatchFiller::BatchFiller(const Dataset& dataset, const std::vector<recipe::TransformSpec>& transforms, uint64_t seed,
                         bool training)
    : dataset_(dataset), seed_(seed) {
  const bool pictures = dataset.info().elements == Elements::kUint8;
  if (pictures) {
    lookup_.resize(static_cast<size_t>(dataset.info().channels) * 256);
    for (size_t i = 0; i < lookup_.size(); ++i) lookup_[i] = static_cast<float>(i % 256) / 255.0f;
  }
  check_order(transforms);
  bool cropped = false, flipped = false;
  const auto crop_once = [&cropped](const std::string& where) {
    if (std::exchange(cropped, true))
      throw Error(ErrorKind::kRecipe, where, "is the second random crop",
                  "keep one of pad_crop and random_resized_crop");
  };
  for (size_t i = 0; i < transforms.size(); ++i) {
    const recipe::TransformSpec& transform = transforms[i];
    const std::string where = str("data.transforms[", i, "].", transform.name);
    if (transform.name == "normalize") {
      add_normalization(transform, where);
    } else if (transform.name == "pad_crop") {
      check_pictures(dataset.info(), where);
      if (transform.pad < 0 || transform.pad > kMaxPad) {
        throw Error(ErrorKind::kRecipe, where + ".pad", str("is ", transform.pad, ", expected 0..", kMaxPad));
      }
      crop_once(where);
      if (training) pad_ = transform.pad;
    } else if (transform.name == "flip") {
      check_pictures(dataset.info(), where);
      if (!(transform.p >= 0 && transform.p <= 1)) {
        throw Error(ErrorKind::kRecipe, where + ".p", str("is ", transform.p, ", expected 0..1"));
      }
      if (std::exchange(flipped, true)) {
        throw Error(ErrorKind::kRecipe, where, "appears twice", "two flips are one of another probability");
      }
      if (training) mirror_probability_ = transform.p;
    } else if (kOfFiles.contains(transform.name)) {
      check_files_of_pictures(dataset, transform.name, where);
      if (transform.name == "random_resized_crop") crop_once(where);
    } else {
      std::vector<std::string> known = {"normalize", "pad_crop", "flip"};
      known.insert(known.end(), kOfFiles.begin(), kOfFiles.end());
      throw Error(ErrorKind::kRecipe, str("data.transforms[", i, "]"),
                  str("unknown transform \"", printable(transform.name), "\"", did_you_mean(transform.name, known)),
                  "known: " + join(known, ", "));
    }
  }
  if (dataset.encoded_pictures() != nullptr && pad_ == 0)
    encoded_.emplace(*dataset.encoded_pictures(), transforms, seed, training);
}

void BatchFiller::add_normalization(const recipe::TransformSpec& transform, const std::string& where) {
  const DatasetInfo& info = dataset_.info();
  check_count(info, where + ".mean", transform.mean);
  check_count(info, where + ".std", transform.std);
  for (int64_t c = 0; c < info.channels; ++c) {
    const size_t at = static_cast<size_t>(c);
    const float mean = static_cast<float>(transform.mean[transform.mean.size() == 1 ? 0 : at]);
    const float std = static_cast<float>(transform.std[transform.std.size() == 1 ? 0 : at]);
    if (!std::isfinite(mean)) throw Error(ErrorKind::kRecipe, where + ".mean", "is not finite");
    if (!std::isfinite(std) || std <= 0) {
      throw Error(ErrorKind::kRecipe, where + ".std", "must be above 0 (and finite in float32)");
    }
    if (info.elements == Elements::kFloat32) {
      normalizations_.push_back({mean, std});
      continue;
    }
    for (size_t value = 0; value < 256; ++value) {
      float& entry = lookup_[at * 256 + value];
      entry = (entry - mean) / std;
    }
  }
}

BatchFiller::View BatchFiller::view(uint64_t epoch, uint64_t sample) const {
  View view;
  if (pad_ > 0) {
    const uint64_t bits = make_key(Stream::kCrop, seed_, epoch, sample);
    const uint64_t places = static_cast<uint64_t>(2 * pad_ + 1);
    view.down = static_cast<int64_t>(below(static_cast<uint32_t>(bits), places)) - pad_;
    view.right = static_cast<int64_t>(below(static_cast<uint32_t>(bits >> 32), places)) - pad_;
  }
  if (mirror_probability_ > 0) {
    view.mirrored = unit_interval(make_key(Stream::kFlip, seed_, epoch, sample)) < mirror_probability_;
  }
  return view;
}

void BatchFiller::fill_picture(const uint8_t* pixels, const View& view, float* out) const {
  const DatasetInfo& info = dataset_.info();
  const int64_t height = info.height, width = info.width, plane = height * width;
  const bool moved = view.down != 0 || view.right != 0;
  // Columns without a pixel of the picture, on the left and the right of the crop; one of the two is 0.
  const int64_t left = std::clamp<int64_t>(-view.right, 0, width), right = std::clamp<int64_t>(view.right, 0, width);
  const int64_t inside = width - left - right;
  const int64_t begin = view.mirrored ? right : left;  // where the pixels begin in a line of the output
  for (int64_t c = 0; c < info.channels; ++c, pixels += plane, out += plane) {
    const float* table = lookup_.data() + c * 256;
    if (!moved && !view.mirrored) {
      look_up(pixels, out, plane, table);
      continue;
    }
    // Padding has pixel value 0, which normalisation then maps like any other.
    for (int64_t y = 0; y < height; ++y) {
      float* line = out + y * width;
      const int64_t from = y + view.down;
      if (from < 0 || from >= height) {
        std::fill_n(line, width, table[0]);
        continue;
      }
      std::fill_n(line, begin, table[0]);
      const uint8_t* first = pixels + from * width + right;
      if (view.mirrored) {
        look_up_mirrored(first, line + begin, inside, table);
      } else {
        look_up(first, line + begin, inside, table);
      }
      std::fill_n(line + begin + inside, width - begin - inside, table[0]);
    }
  }
}

void BatchFiller::fill_features(const float* features, float* out) const {
  const size_t count = static_cast<size_t>(dataset_.info().channels);
  std::copy_n(features, count, out);
  for (size_t first = 0; first < normalizations_.size(); first += count) {
    for (size_t c = 0; c < count; ++c) {
      const Normalization& n = normalizations_[first + c];
      out[c] = (out[c] - n.mean) / n.std;
    }
  }
}

int64_t BatchFiller::sample_size(const Form& form) const {
  const DatasetInfo& info = dataset_.info();
  return info.channels * (form.shape.width > 0 ? form.shape.height * form.shape.width : info.height * info.width);
}

void BatchFiller::fill_one(uint64_t epoch, uint64_t sample, float* image, const Targets& targets, size_t place,
                           const Form& form) const {
  thread_local Scratch scratch;
  const DatasetInfo& info = dataset_.info();
  if (encoded_) {
    const image::Size own = {info.width, info.height};
    encoded_->fill(epoch, sample, form.shape.width > 0 ? form.shape : own, form.layout, image, scratch);
  } else if (info.elements == Elements::kUint8) {
    fill_picture(dataset_.pixels(sample, scratch), view(epoch, sample), image);
  } else {
    fill_features(dataset_.features(sample), image);
  }
  if (info.values == 0) {
    targets.labels[place] = dataset_.label(sample);
  } else {
    std::copy_n(dataset_.values(sample), info.values, targets.values + place * static_cast<size_t>(info.values));
  }
}

void BatchFiller::fill(uint64_t epoch, std::span<const uint64_t> samples, float* images, Targets targets,
                       const Form& form) const {
  const int64_t size = sample_size(form);
  for (size_t i = 0; i < samples.size(); ++i, images += size) fill_one(epoch, samples[i], images, targets, i, form);
}

size_t BatchFiller::fill_good(uint64_t epoch, std::span<uint64_t> samples, float* images, Targets targets,
                              const Form& form, BadSamples& bad) const {
  const int64_t size = sample_size(form);
  size_t good = 0;
  for (const uint64_t sample : samples) {
    try {
      fill_one(epoch, sample, images, targets, good, form);
    } catch (const Error& error) {
      bad.add(sample, error);
      continue;
    }
    samples[good++] = sample;
    images += size;
  }
  return good;
}

}  // namespace skytrain::data
