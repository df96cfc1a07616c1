#include "skytrain/train/data_feed.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

#include "skytrain/base/error.h"
#include "skytrain/data/mix.h"
#include "skytrain/data/order.h"
#include "skytrain/data/progressive_resizing.h"

namespace skytrain::train {
namespace {

// Shapes other than the data set's own.
void check_shapes(const data::BatchFiller& filler, const recipe::DataSpec& spec) {
  const auto refuse = [](const std::string& key, const std::string& why, const std::string& hint) {
    throw Error(ErrorKind::kRecipe, "data." + key, why, hint);
  };
  const std::string key = spec.buckets.empty() ? "progressive_resizing" : "buckets";
  if (spec.buckets.empty() && !spec.progressive_resizing) return;
  if (!filler.fills_any_shape())
    refuse(key, "needs files of pictures that are scaled as they are decoded",
           "remove it, or use a folder of pictures, without pad_crop");
  if (spec.buckets.empty()) return;
  for (const recipe::TransformSpec& transform : spec.transforms)
    if (transform.name == "random_resized_crop")
      refuse(key, "does not go with random_resized_crop, which cuts parts of one shape from all pictures",
             "remove one of the two");
}

}  // namespace

DataFeed::DataFeed(const data::Dataset& dataset, const recipe::Recipe& recipe)
    : dataset_(dataset),
      filler_(dataset, recipe.data.transforms, recipe.seed, /*training=*/true),
      mixing_(recipe.train.mixup, recipe.train.cutmix, recipe.seed),
      spec_(recipe.data),
      seed_(recipe.seed),
      target_values_(mixing_.on() ? recipe.model.classes : dataset.info().values),
      bad_(uint64_t(recipe.data.skip_bad_samples)) {
  if (mixing_.on() && dataset.info().values > 0)
    throw Error(ErrorKind::kRecipe, recipe.train.mixup ? "train.mixup" : "train.cutmix",
                "mixes classes, and the targets of data.train are values", "remove it");
  if (recipe.train.cutmix && dataset.info().height * dataset.info().width == 1)
    throw Error(ErrorKind::kRecipe, "train.cutmix", "cuts pictures, and data.train holds rows of features",
                "remove it, or use train.mixup");
  check_shapes(filler_, recipe.data);
}

void DataFeed::set_memory_format(at::MemoryFormat format) {
  // Mixing goes through the planes of two samples.
  if (filler_.fills_hwc() && !mixing_.on()) image_format_ = format;
}

void DataFeed::divide(const std::function<bool()>& stop) {
  if (spec_.buckets.empty()) return;
  std::vector<image::Size> shapes;
  for (const std::string& text : spec_.buckets) shapes.push_back(data::shape_from_text(text));
  buckets_.emplace(*dataset_.encoded_pictures(), shapes, stop);
  bucket_begins_.clear();
  uint64_t begin = 0;
  for (const uint64_t samples : buckets_->samples()) {
    bucket_begins_.push_back(begin);
    begin += samples;
  }
}

std::vector<uint64_t> DataFeed::bucket_samples() const {
  return buckets_ ? buckets_->samples() : std::vector{dataset_.info().samples};
}

image::Size DataFeed::full_shape(uint64_t bucket) const {
  return buckets_ ? buckets_->shape(bucket) : image::Size{dataset_.info().width, dataset_.info().height};
}

image::Size DataFeed::shape_of(const data::Slot& slot) const {
  const image::Size full = full_shape(slot.bucket);
  if (!spec_.progressive_resizing || total_steps_ == 0) return full;
  return data::size_at(*spec_.progressive_resizing, full, double(slot.step) / double(total_steps_));
}

std::vector<image::Size> DataFeed::shapes() const {
  std::vector<image::Size> all;
  for (uint64_t bucket = 0; bucket < (buckets_ ? buckets_->count() : 1); ++bucket) {
    all.push_back(full_shape(bucket));
    if (spec_.progressive_resizing) all.push_back(data::size_at(*spec_.progressive_resizing, all.back(), 0));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const image::Size& a, const image::Size& b) { return a.width * a.height > b.width * b.height; });
  return all;
}

void DataFeed::samples_of(const data::Slot& slot, std::vector<uint64_t>& indices) const {
  indices.resize(slot.count);
  if (!buckets_) {
    const data::Order order(dataset_.info().samples, seed_, slot.epoch);
    for (uint64_t i = 0; i < slot.count; ++i) indices[i] = order[slot.begin + i];
    return;
  }
  const uint64_t begin = bucket_begins_[slot.bucket];
  const uint64_t end = slot.bucket + 1 < buckets_->count() ? bucket_begins_[slot.bucket + 1] : dataset_.info().samples;
  const data::Order order(end - begin, data::make_key(data::Stream::kBucketOrder, seed_, slot.bucket), slot.epoch);
  for (uint64_t i = 0; i < slot.count; ++i) indices[i] = buckets_->sample(slot.bucket, order[slot.begin - begin + i]);
}

void DataFeed::fill(const data::Slot& slot, at::Tensor& images, at::Tensor& target) const {
  fill(slot, shape_of(slot), images, target);
}

void DataFeed::fill(const data::Slot& slot, const image::Size& shape, at::Tensor& images, at::Tensor& target) const {
  const data::DatasetInfo& info = dataset_.info();
  const int64_t count = int64_t(slot.count);
  if (const std::array sizes{count, info.channels, shape.height, shape.width};
      !images.defined() || images.sizes() != sizes) {
    images.reset();  // freed before its successor takes memory
    images = at::empty(sizes, at::kFloat, std::nullopt, std::nullopt, std::nullopt, image_format_);
  }
  if (!target.defined() || target.size(0) != count)
    target = target_values_ == 0 ? at::empty({count}, at::kLong) : at::empty({count, target_values_}, at::kFloat);
  thread_local std::vector<uint64_t> indices;
  thread_local std::vector<int64_t> labels;
  thread_local std::vector<float> scratch;
  samples_of(slot, indices);
  float* const pixels = images.mutable_data_ptr<float>();
  data::Targets targets;
  if (mixing_.on()) {
    labels.resize(slot.count);
    targets.labels = labels.data();
  } else if (info.values > 0) {
    targets.values = target.mutable_data_ptr<float>();
  } else {
    targets.labels = target.mutable_data_ptr<int64_t>();
  }
  const bool planes = images.is_contiguous();
  const size_t good = filler_.fill_good(slot.epoch, indices, pixels, targets,
                                        {.layout = planes ? image::Layout::kChw : image::Layout::kHwc,
                                         .shape = filler_.fills_any_shape() ? shape : image::Size{}},
                                        bad_);
  if (good < slot.count) {
    images = images.narrow(0, 0, int64_t(good));
    target = target.narrow(0, 0, int64_t(good));
    labels.resize(std::min(labels.size(), good));
  }
  if (mixing_.on() && good > 0)
    mixing_.apply(slot.epoch, slot.begin, {info.channels, shape.height, shape.width}, labels, target_values_, pixels,
                  target.mutable_data_ptr<float>(), scratch);
}

Batch DataFeed::batch(const data::Slot& slot) const {
  Batch batch;
  fill(slot, batch.images, batch.target);
  return batch;
}

Batch DataFeed::largest_batch(int64_t samples) const {
  const image::Size shape = full_shape(buckets_ ? buckets_->largest() : 0);
  return {at::zeros({samples, dataset_.info().channels, shape.height, shape.width}, at::kFloat, std::nullopt,
                    std::nullopt, std::nullopt)
              .contiguous(image_format_),
          target_values_ == 0 ? at::zeros({samples}, at::kLong) : at::zeros({samples, target_values_}, at::kFloat)};
}

}  // namespace skytrain::train
