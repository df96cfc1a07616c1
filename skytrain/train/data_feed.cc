#include "skytrain/train/data_feed.h"

#include <ATen/ops/empty.h>

#include "skytrain/base/error.h"
#include "skytrain/data/order.h"

namespace skytrain::train {

DataFeed::DataFeed(const data::Dataset& dataset, const recipe::Recipe& recipe)
    : dataset_(dataset),
      filler_(dataset, recipe.data.transforms, recipe.seed, /*training=*/true),
      mixing_(recipe.train.mixup, recipe.train.cutmix, recipe.seed),
      seed_(recipe.seed),
      target_values_(mixing_.on() ? recipe.model.classes : dataset.info().values) {
  if (mixing_.on() && dataset.info().values > 0)
    throw Error(ErrorKind::kRecipe, recipe.train.mixup ? "train.mixup" : "train.cutmix",
                "mixes classes, and the targets of data.train are values", "remove it");
  if (recipe.train.cutmix && dataset.info().height * dataset.info().width == 1)
    throw Error(ErrorKind::kRecipe, "train.cutmix", "cuts pictures, and data.train holds rows of features",
                "remove it, or use train.mixup");
}

void DataFeed::set_memory_format(at::MemoryFormat format) {
  // Mixing goes through the planes of two samples.
  if (filler_.fills_hwc() && !mixing_.on()) image_format_ = format;
}

void DataFeed::samples_of(const data::Slot& slot, std::vector<uint64_t>& indices) const {
  indices.resize(slot.count);
  const data::Order order(dataset_.info().samples, seed_, slot.epoch);
  for (uint64_t i = 0; i < slot.count; ++i) indices[i] = order[slot.begin + i];
}

void DataFeed::fill(const data::Slot& slot, const at::Tensor& images, const at::Tensor& target) const {
  thread_local std::vector<uint64_t> indices;
  samples_of(slot, indices);
  float* const pixels = images.mutable_data_ptr<float>();
  const data::DatasetInfo& info = dataset_.info();
  if (!mixing_.on()) {
    filler_.fill(slot.epoch, indices, pixels,
                 info.values > 0 ? data::Targets{.values = target.mutable_data_ptr<float>()}
                                 : data::Targets{.labels = target.mutable_data_ptr<int64_t>()},
                 images.is_contiguous() ? image::Layout::kChw : image::Layout::kHwc);
    return;
  }
  thread_local std::vector<int64_t> labels;
  thread_local std::vector<float> scratch;
  labels.resize(slot.count);
  filler_.fill(slot.epoch, indices, pixels, {.labels = labels.data()});
  mixing_.apply(slot.epoch, slot.begin, {info.channels, info.height, info.width}, labels, target_values_, pixels,
                target.mutable_data_ptr<float>(), scratch);
}

Batch DataFeed::batch(const data::Slot& slot) const {
  const data::DatasetInfo& info = dataset_.info();
  const int64_t count = int64_t(slot.count);
  Batch batch{at::empty({count, info.channels, info.height, info.width}, at::kFloat, std::nullopt, std::nullopt,
                        std::nullopt, image_format_),
              target_values_ == 0 ? at::empty({count}, at::kLong) : at::empty({count, target_values_}, at::kFloat)};
  fill(slot, batch.images, batch.target);
  return batch;
}

}  // namespace skytrain::train
