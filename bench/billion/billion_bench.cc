// Sets of very many samples, for ./dev bench billion:
//
//   billion_bench make FOLDER SHARDS SAMPLES_A_SHARD SIDE PRESENT    an MDS set of sparse files
//   billion_bench open FOLDER CLASSES BATCH                          what its opening and its first batch take
//
// Every sample is the same JPEG of SIDE x SIDE pixels; on the disk are the first PRESENT samples of seed 0's first
// epoch. Both print one line of JSON.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "skytrain/base/cpu_clock.h"
#include "skytrain/base/error.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/mds.h"
#include "skytrain/data/order.h"
#include "skytrain/data/sparse_mds_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace {

using namespace skytrain;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kSeed = 0;
constexpr int64_t kSize = 224;

double now() { return seconds_of(CLOCK_MONOTONIC); }

// Bytes of the process that are its own; files that it has mapped may be dropped.
uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t kib = 0;
  while (status >> word) {
    if (word == "RssAnon:") status >> kib;
  }
  return kib << 10;
}

Json make_set(const std::string& folder, uint64_t shards, uint64_t samples, int64_t side, uint64_t present) {
  const data::SparseMds set{
      .shards = shards,
      .samples_a_shard = samples,
      .picture = image::encode_jpeg(side, side, image::noise(side, side), {.quality = 75, .across = 2, .down = 2})};
  const data::Order order(set.samples(), kSeed, /*epoch=*/0);
  std::vector<uint64_t> indices;
  for (uint64_t i = 0; i < present; ++i) indices.push_back(order[i]);
  data::put_sparse_mds(folder, set, indices);
  return {{"samples", set.samples()}, {"picture_bytes", set.picture.size()}};
}

Json open_set(const std::string& folder, int64_t classes, uint64_t batch) {
  recipe::DatasetSpec spec;
  spec.path = folder;
  spec.format = "mds";
  spec.size = kSize;
  recipe::TransformSpec crop;
  crop.name = "random_resized_crop";
  std::vector<float> images(batch * 3 * kSize * kSize);
  std::vector<int64_t> labels(batch);
  std::vector<uint64_t> indices;

  const uint64_t memory = anonymous_bytes(), peak = peak_rss_bytes();
  const double begin = now();
  const auto set = data::open_dataset(FileSystem::real(), spec, {.classes = classes});
  const double opened = now();
  const uint64_t memory_opened = anonymous_bytes();
  const data::BatchFiller filler(*set, {crop}, kSeed, /*training=*/true);
  const data::Order order(set->info().samples, kSeed, /*epoch=*/0);
  for (uint64_t i = 0; i < batch; ++i) indices.push_back(order[i]);
  filler.fill(/*epoch=*/0, indices, images.data(), {.labels = labels.data()});
  const double filled = now();
  return {{"samples", set->info().samples},
          {"open_s", opened - begin},
          {"batch_s", filled - opened},
          {"set_bytes", memory_opened - memory},
          {"peak_growth_bytes", peak_rss_bytes() - peak}};
}

}  // namespace

int main(int count, char** words) {
  const auto number = [&](int i) { return std::strtoull(words[i], nullptr, 10); };
  const std::string verb = count > 1 ? words[1] : "";
  try {
    if (verb == "make" && count == 7) {
      std::puts(make_set(words[2], number(3), number(4), static_cast<int64_t>(number(5)), number(6)).dump().c_str());
    } else if (verb == "open" && count == 5) {
      std::puts(open_set(words[2], static_cast<int64_t>(number(3)), number(4)).dump().c_str());
    } else {
      std::fputs("billion_bench make FOLDER SHARDS SAMPLES SIDE PRESENT | open FOLDER CLASSES BATCH\n", stderr);
      return 2;
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return 1;
  }
  return 0;
}
