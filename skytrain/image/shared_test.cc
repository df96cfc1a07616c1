// Pictures of others, from the data folder beside the repository (SKYTRAIN_SHARED). CTest runs these as image.shared
// (label `shared`); they fail where the folder is missing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/image/mutation_check_test_data.h"
#include "skytrain/image/region_test_data.h"
#include "skytrain/image/resample.h"
#include "skytrain/image/resize.h"

namespace skytrain::image {
namespace {

std::vector<std::string> files_below(const std::string& path) {
  const char* folder = std::getenv("SKYTRAIN_SHARED");
  const std::string shared = folder != nullptr && *folder != '\0' ? folder : "../shared";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared + "/data/" + path)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Of each picture that decodes, random regions equal the whole. Returns how many pictures did.
int compare_regions(const std::string& folder, int count) {
  Scratch scratch;
  std::mt19937 random(11);
  int decoded = 0;
  for (const std::string& path : files_below(folder)) {
    SCOPED_TRACE(path);
    const std::string file = FileSystem::real().read_file(path);
    try {
      decode_picture(bytes_of(file), path, scratch);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      continue;
    }
    expect_regions(file, count, random, scratch);
    ++decoded;
  }
  return decoded;
}

TEST(DISABLED_Shared, RegionsOfImageNet) { EXPECT_GE(compare_regions("imagenet_sample", 5), 241); }

TEST(DISABLED_Shared, RegionsOfHardPictures) { EXPECT_GT(compare_regions("hard_jpeg", 40), 50); }

TEST(DISABLED_Shared, SizesOfHardPictures) {
  Scratch scratch;
  int known = 0;
  for (const std::string& path : files_below("hard_jpeg")) {
    const std::string file = FileSystem::real().read_file(path);
    Picture picture;
    try {
      picture = decode_picture(bytes_of(file), path, scratch);
    } catch (const Error&) {
      continue;
    }
    EXPECT_EQ(picture_size(bytes_of(file), path), (Size{picture.width, picture.height})) << path;
    ++known;
  }
  EXPECT_GT(known, 50);
}

// Hard pictures, and those of ImageNet that are not the usual three colours; 500 mutations of each.
TEST(DISABLED_Shared, MutationsOfHardPictures) {
  std::map<std::string, std::string> files;
  for (const std::string& path : files_below("hard_jpeg")) files[path] = FileSystem::real().read_file(path);
  for (const std::string& path : files_below("imagenet_sample/images")) {
    const std::string file = FileSystem::real().read_file(path);
    if (file.find(std::string("\xff\xc0\x00\x0b", 4)) != std::string::npos) files[path] = file;  // one component
  }
  ASSERT_GT(files.size(), 140u);
  const MutationCounts counts = MutationCheck().run(files);
  EXPECT_GT(counts.decoded, 5000);
  EXPECT_GT(counts.refused, 20000);
}

// The fused pass against the whole picture and Pillow's own arithmetic.
TEST(DISABLED_Shared, ResizedImageNet) {
  Scratch scratch;
  constexpr int64_t kSide = 224;
  std::vector<uint8_t> expected(3 * kSide * kSide), got(expected.size());
  const OutputSpec output{.layout = Layout::kChw, .type = ElementType::kUint8};
  for (const std::string& path : files_below("imagenet_sample/images")) {
    const std::string file = FileSystem::real().read_file(path);
    const Picture picture = decode_picture(bytes_of(file), path, scratch);
    const Size size{picture.width, picture.height};
    resize_and_crop(picture, 256, kSide, scratch, path, expected.data());
    decode_resized(bytes_of(file), path, {0, 0, size.width, size.height}, resize_and_center_crop(size, 256, kSide),
                   output, got.data(), scratch);
    int64_t sum = 0;
    int largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const int difference = std::abs(got[i] - expected[i]);
      sum += difference;
      largest = std::max(largest, difference);
    }
    EXPECT_LE(largest, 2) << path;
    EXPECT_LT(static_cast<double>(sum) / static_cast<double>(got.size()), 0.1) << path;
  }
}

}  // namespace
}  // namespace skytrain::image
