#include "skytrain/train/evaluation_set.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "skytrain/train/run_setup.h"

namespace skytrain::train {
namespace {

uint64_t batches_of(uint64_t samples, uint64_t size) { return (samples - 1) / size + 1; }

}  // namespace

EvaluationSet::EvaluationSet(std::unique_ptr<data::Dataset> dataset, const recipe::Recipe& recipe,
                             const std::function<bool()>& stop)
    : dataset_(std::move(dataset)),
      filler_(*dataset_, recipe.data.transforms, recipe.seed, /*training=*/false),
      bad_(uint64_t(recipe.data.skip_bad_samples)) {
  check_target_values(recipe, *dataset_);
  if (recipe.data.buckets.empty() || !filler_.fills_any_shape()) return;
  std::vector<image::Size> shapes;
  for (const std::string& text : recipe.data.buckets) shapes.push_back(data::shape_from_text(text));
  buckets_.emplace(*dataset_->encoded_pictures(), shapes, stop);
}

uint64_t EvaluationSet::Batches::count() const {
  return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0},
                         [this](uint64_t sum, uint64_t samples) { return sum + batches_of(samples, size); });
}

EvaluationSet::Batches::Range EvaluationSet::Batches::range(uint64_t batch) const {
  uint64_t bucket = 0;
  for (; batch >= batches_of(buckets[bucket], size); ++bucket) batch -= batches_of(buckets[bucket], size);
  const uint64_t begin = batch * size;
  return {bucket, begin, std::min(size, buckets[bucket] - begin)};
}

EvaluationSet::Batches EvaluationSet::batches(uint64_t size) const {
  return {buckets_ ? buckets_->samples() : std::vector{info().samples}, std::min(size, info().samples)};
}

void EvaluationSet::fill(const Batches::Range& range, std::vector<uint64_t>& samples, at::Tensor& images,
                         at::Tensor& target) const {
  const data::DatasetInfo& info = dataset_->info();
  const int64_t length = int64_t(range.length);
  const image::Size shape = buckets_ ? buckets_->shape(range.bucket) : image::Size{info.width, info.height};
  if (const std::array sizes{length, info.channels, shape.height, shape.width};
      !images.defined() || images.sizes() != sizes) {
    images.reset();  // freed before its successor takes memory
    images = at::empty(sizes, at::kFloat);
    target = info.values == 0 ? at::empty({length}, at::kLong) : at::empty({length, info.values}, at::kFloat);
  }
  samples.resize(range.length);
  for (uint64_t i = 0; i < range.length; ++i)
    samples[i] = buckets_ ? buckets_->sample(range.bucket, range.begin + i) : range.begin + i;
  const size_t good = filler_.fill_good(/*epoch=*/0, samples, images.mutable_data_ptr<float>(),
                                        info.values == 0 ? data::Targets{.labels = target.mutable_data_ptr<int64_t>()}
                                                         : data::Targets{.values = target.mutable_data_ptr<float>()},
                                        {.shape = buckets_ ? shape : image::Size{}}, bad_);
  if (good == range.length) return;
  samples.resize(good);
  images = images.narrow(0, 0, int64_t(good));
  target = target.narrow(0, 0, int64_t(good));
}

}  // namespace skytrain::train
