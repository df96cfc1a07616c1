#include "skytrain/data/input_bench.h"

#include <algorithm>
#include <limits>
#include <span>

#include "skytrain/base/cpu_clock.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/order.h"
#include "skytrain/data/read_ahead.h"
#include "skytrain/image/lines.h"
#include "skytrain/image/picture.h"

namespace skytrain::data {
namespace {

constexpr double kSecondsOfStages = 1;
constexpr int kPlacesPerThread = 2;

double wall() { return seconds_of(CLOCK_MONOTONIC); }

struct Batch {
  std::vector<float> images;
  std::vector<int64_t> labels;
};

void measure_stages(const EncodedPictures& pictures, const std::vector<recipe::TransformSpec>& transforms,
                    uint64_t seed, InputBenchResult& result) {
  const EncodedFiller filler(pictures, transforms, seed, /*training=*/true);
  Scratch scratch;
  std::vector<float> sample(static_cast<size_t>(3 * pictures.size() * pictures.size()));
  double read = 0, decode = 0, all = 0;
  const Order order(pictures.info().samples, seed, /*epoch=*/0);
  const double begin = wall();
  for (uint64_t i = 0; i < order.size() && wall() - begin < kSecondsOfStages; ++i) {
    const double start = wall();
    pictures.encoded(order[i], scratch);
    const double was_read = wall();
    const std::span<const uint8_t> file = pictures.encoded(order[i], scratch);
    const double was_read_again = wall();
    const image::Orientation orientation = pictures.orientation(file);
    const image::Size size = image::picture_size(file, scratch.path);
    const image::Region region =
        image::stored_region(filler.region(0, order[i], image::upright_size(size, orientation)), size, orientation);
    image::Lines& lines = image::open_lines(file, scratch.path, region, scratch);
    for (int64_t line = 0; line < region.height; ++line) lines.next();
    const double was_decoded = wall();
    filler.fill(0, order[i], {pictures.size(), pictures.size()}, image::Layout::kChw, sample.data(), scratch);
    read += was_read - start;
    decode += was_decoded - was_read_again;
    // Its own reading comes from the cache, as the second one did.
    all += was_read - start + std::max(0.0, wall() - was_decoded - (was_read_again - was_read));
  }
  if (all <= 0) return;
  result.read_share = std::min(1.0, read / all);
  result.decode_share = std::min(1.0 - result.read_share, decode / all);
  result.resize_share = 1 - result.read_share - result.decode_share;
}

}  // namespace

InputBenchResult bench_input(const EncodedPictures& pictures, const std::vector<recipe::TransformSpec>& transforms,
                             const InputBenchOptions& options, const std::function<bool()>& stop) {
  const BatchFiller filler(pictures, transforms, options.seed, /*training=*/true);
  const uint64_t samples = pictures.info().samples, batch = options.batch;
  const size_t sample_size = static_cast<size_t>(3 * pictures.size() * pictures.size());
  const int places = kPlacesPerThread * options.threads;
  std::vector<Batch> batches(static_cast<size_t>(places));
  for (Batch& one : batches) {
    one.images.resize(batch * sample_size);
    one.labels.resize(batch);
  }
  const auto fill = [&](uint64_t ticket, int place) {
    thread_local std::vector<uint64_t> indices;
    indices.resize(batch);
    const uint64_t epoch = ticket * batch / samples;  // batches that cross into the next take its numbers
    const Order order(samples, options.seed, epoch);
    for (uint64_t i = 0; i < batch; ++i) indices[i] = order[(ticket * batch + i) % samples];
    Batch& one = batches[static_cast<size_t>(place)];
    filler.fill(epoch, indices, one.images.data(), {.labels = one.labels.data()});
    return true;
  };
  ReadAhead ahead({.first = 0,
                   .end = std::numeric_limits<uint64_t>::max(),
                   .places = places,
                   .least_threads = options.threads,
                   .most_threads = options.threads},
                  fill);
  InputBenchResult result;
  uint64_t ticket = 0;
  for (; ticket < static_cast<uint64_t>(options.threads); ++ticket) ahead.take(ticket, [](int) {});
  const double begin = wall(), cpu = process_cpu_seconds();
  while (!stop() && wall() - begin < options.seconds && (options.images == 0 || result.images < options.images)) {
    ahead.take(ticket++, [](int) {});
    result.images += batch;
  }
  result.seconds = wall() - begin;
  result.cpu_seconds = process_cpu_seconds() - cpu;
  measure_stages(pictures, transforms, options.seed, result);
  return result;
}

}  // namespace skytrain::data
