#include <gtest/gtest.h>

#include <filesystem>

#include "skytrain/base/file_system.h"
#include "skytrain/image/mutation_check_test_data.h"
#include "skytrain/image/odd_pictures_test_data.h"
#include "skytrain/image/orientation.h"

namespace skytrain::image {
namespace {

TEST(OddPictures, TwoWereTakenSideways) {
  const auto files = odd_pictures();
  for (const char* name : {"exif_little.jpg", "exif_big.jpg"}) {
    EXPECT_EQ(exif_orientation(bytes_of(files.at(name))), orientation_of(6)) << name;
  }
}

TEST(Mutations, OfSmallPicturesAreDecodedOrRefused) {
  std::map<std::string, std::string> files = odd_pictures();
  for (const auto& entry : std::filesystem::directory_iterator("tests/testdata/pictures")) {
    if (entry.path().extension() == ".py") continue;
    files[entry.path().filename().string()] = FileSystem::real().read_file(entry.path().string());
  }
  ASSERT_GT(files.size(), 60u);
  const MutationCounts counts = MutationCheck().run(files);
  EXPECT_GT(counts.decoded, 2000);
  EXPECT_GT(counts.refused, 5000);
}

}  // namespace
}  // namespace skytrain::image
