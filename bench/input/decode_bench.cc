// Pictures a second of one thread's CPU time: RandomResizedCrop(224), a flip every other time, and normalising, from
// encoded pictures in memory to float NCHW.
//   decode_bench FOLDER [SECONDS]   ->   {"pictures": …, "regions_per_cpu_s": …, "fused_per_cpu_s": …, "ratio": …, …}
// regions: only the decoding of the same regions, line by line into the cache. ratio: of the fused pass's time to that.
// The two take turns, so that a machine that changes its clock treats both alike.

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/base/mix.h"
#include "skytrain/image/kernels.h"
#include "skytrain/image/lines.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/resize.h"

namespace {

using namespace skytrain;

constexpr int64_t kSide = 224;
constexpr size_t kBatch = 64;
constexpr float kMean[] = {0.485f, 0.456f, 0.406f}, kStd[] = {0.229f, 0.224f, 0.225f};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Encoded {
  std::string path;
  std::vector<uint8_t> bytes;
};

std::vector<Encoded> read_folder(const std::string& folder) {
  std::vector<Encoded> pictures;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    Encoded picture{entry.path().string(), {std::istreambuf_iterator<char>(file), {}}};
    if (image::is_jpeg(picture.bytes) || image::is_png(picture.bytes)) pictures.push_back(std::move(picture));
  }
  std::sort(pictures.begin(), pictures.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return pictures;
}

// RandomResizedCrop's.
image::Region draw_region(const image::Size& size, KeyedRandom& random) {
  const auto place = [&](int64_t places) {
    return static_cast<int64_t>(random.integer(static_cast<uint64_t>(places)));
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(size.width * size.height) * random.uniform(0.08, 1);
    const double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int64_t width = std::lround(std::sqrt(area * ratio)), height = std::lround(std::sqrt(area / ratio));
    if (width < 1 || width > size.width || height < 1 || height > size.height) continue;
    return {place(size.width - width + 1), place(size.height - height + 1), width, height};
  }
  const int64_t side = std::min(size.width, size.height);
  return {(size.width - side) / 2, (size.height - side) / 2, side, side};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: decode_bench FOLDER [SECONDS]\n");
    return 2;
  }
  const double budget = argc > 2 ? std::atof(argv[2]) : 10;
  const std::vector<Encoded> pictures = read_folder(argv[1]);
  if (pictures.empty()) {
    std::fprintf(stderr, "%s: no JPEG or PNG pictures\n", argv[1]);
    return 2;
  }
  image::Scratch scratch;
  struct alignas(64) Sample {
    float elements[3 * kSide * kSide];
  };
  std::vector<Sample> batch(kBatch);
  image::OutputSpec output = image::normalized(kMean, kStd);
  output.past_cache = true;
  const image::ResizeSpec resize{.size = {kSide, kSide}};
  double regions_s = 0, fused_s = 0;
  int64_t regions = 0, fused = 0, pixels = 0;
  // One round to warm up. Each round has its own regions, the same for both.
  for (uint64_t round = 0; regions_s + fused_s < budget || round < 3; ++round) {
    for (const bool whole_pass : {false, true}) {
      KeyedRandom random(round);
      const double begin = cpu_seconds();
      for (size_t i = 0; i < pictures.size(); ++i) {
        const auto& [path, bytes] = pictures[i];
        const image::Region region = draw_region(image::picture_size(bytes, path), random);
        output.flip = random.chance(0.5);
        if (whole_pass) {
          image::decode_resized(bytes, path, region, resize, output, batch[i % kBatch].elements, scratch);
        } else {
          image::Lines& lines = image::open_lines(bytes, path, region, scratch);
          for (int64_t y = 0; y < region.height; ++y) lines.next();
          if (round > 0) pixels += region.width * region.height;
        }
      }
      if (round == 0) continue;
      (whole_pass ? fused_s : regions_s) += cpu_seconds() - begin;
      (whole_pass ? fused : regions) += static_cast<int64_t>(pictures.size());
    }
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double regions_rate = static_cast<double>(regions) / regions_s,
               fused_rate = static_cast<double>(fused) / fused_s;
  OrderedJson result;
  result["pictures"] = pictures.size();
  result["regions_per_cpu_s"] = regions_rate;
  result["fused_per_cpu_s"] = fused_rate;
  result["ratio"] = regions_rate / fused_rate;
  result["region_megapixels_per_cpu_s"] = static_cast<double>(pixels) / regions_s * 1e-6;
  result["instructions"] = image::best_kernels().name;
  result["peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024;
  std::printf("%s\n", result.dump().c_str());
}
