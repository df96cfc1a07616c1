// Data sets that the programs of others wrote (tests/testdata/formats/make_formats.py): the pictures come out of them
// as they went in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/encoded_pictures.h"

namespace skytrain::data {
namespace {

void expect_pictures(const std::string& format, const std::string& name, bool rising = true) {
  const FileSystem& fs = FileSystem::real();
  recipe::DatasetSpec spec;
  spec.format = format;
  spec.path = "tests/testdata/formats/" + name;
  spec.size = 8;
  const auto set = open_dataset(fs, spec, {});
  ASSERT_EQ(set->info().samples, 4u);
  EXPECT_THAT(set->info().notes, testing::IsEmpty());
  const FileCheck check = set->check_files();
  EXPECT_THAT(check.damage, testing::IsEmpty());
  EXPECT_EQ(check.files, format == "mds" ? 2u : 0u);
  Scratch scratch;
  uint64_t i = 0;
  for (const std::string picture : {"photo.jpg", "grey.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const auto encoded = set->encoded_pictures()->encoded(i, scratch);
    EXPECT_TRUE(std::string(encoded.begin(), encoded.end()) == fs.read_file("tests/testdata/pictures/" + picture))
        << name << " " << picture;
    EXPECT_EQ(set->label(i), static_cast<int64_t>(rising ? i : 7 - i)) << name;
    ++i;
  }
}

TEST(FormatsOfOthers, StreamingsRawShards) { expect_pictures("mds", "mds_raw"); }
TEST(FormatsOfOthers, StreamingsPackedShards) { expect_pictures("mds", "mds_zstd"); }
TEST(FormatsOfOthers, WebdatasetsOwnWriter) { expect_pictures("webdataset", "webdataset.tar"); }
TEST(FormatsOfOthers, GnuTarWithLongNames) { expect_pictures("webdataset", "gnu.tar", /*rising=*/false); }
TEST(FormatsOfOthers, PaxWithLongNames) { expect_pictures("webdataset", "pax.tar"); }

}  // namespace
}  // namespace skytrain::data
