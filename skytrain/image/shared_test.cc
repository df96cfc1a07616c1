// Pictures of others, from the data folder beside the repository (SKYTRAIN_SHARED). CTest runs these as image.shared
// (label `shared`); they fail where the folder is missing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/image/region_test_data.h"

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

}  // namespace
}  // namespace skytrain::image
