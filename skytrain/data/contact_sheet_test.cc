#include "skytrain/data/contact_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/idx_test_data.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/picture_test_data.h"
#include "skytrain/image/region_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kStep = kSheetCell + kSheetGap;

// A sheet's pixels.
struct Sheet {
  explicit Sheet(const Dataset& set) {
    sheet = make_contact_sheet(set, inspect(set, nullptr, nullptr));
    const image::Picture picture = image::decode_picture(image::bytes_of(sheet.png), "sheet", scratch);
    EXPECT_EQ(picture.width, sheet.width);
    EXPECT_EQ(picture.height, sheet.height);
    pixels = picture.pixels;
  }
  // The pixel in the middle of a cell, or beside it.
  std::vector<int> at(int64_t row, int64_t column, int64_t right = 0) const {
    const int64_t x = kSheetGap + column * kStep + kSheetCell / 2 + right, y = kSheetGap + row * kStep + kSheetCell / 2;
    const uint8_t* pixel = pixels + 3 * (y * sheet.width + x);
    return {pixel[0], pixel[1], pixel[2]};
  }
  ContactSheet sheet;
  Scratch scratch;
  const uint8_t* pixels = nullptr;
};

std::string grey(uint8_t value, int64_t width = 8, int64_t height = 8) {
  return image::encode_png(width, height,
                           std::string(static_cast<size_t>(3 * width * height), static_cast<char>(value)));
}

std::unique_ptr<Dataset> open(const FileSystem& fs) {
  recipe::DatasetSpec spec;
  spec.path = "/set";
  spec.format = "imagefolder";
  spec.size = 4;
  return open_dataset(fs, spec, {});
}

TEST(ContactSheet, HasARowOfEachClassAndRedForWhatIsBroken) {
  MemoryFileSystem fs;
  for (int i = 0; i < 25; ++i) put_file(fs, str("/set/cat/", 100 + i, ".png"), grey(static_cast<uint8_t>(10 * i)));
  put_file(fs, "/set/cat/105.png", "broken");
  put_file(fs, "/set/dog/1.png", grey(77, 40, 10));
  put_file(fs, "/set/dog/2.png", grey(78).substr(0, 60));
  const Sheet sheet(*open(fs));
  EXPECT_THAT(sheet.sheet.labels, ElementsAre(0, 1));
  EXPECT_EQ(sheet.sheet.width, kSheetGap + 10 * kStep);
  EXPECT_EQ(sheet.sheet.height, kSheetGap + 2 * kStep);
  // 9 of 24 sound ones, and the broken one.
  std::vector<int> seen;
  for (int64_t column = 0; column < 9; ++column) seen.push_back(sheet.at(0, column)[0] / 10);
  EXPECT_THAT(seen, ElementsAre(0, 2, 6, 9, 11, 14, 17, 19, 22));
  EXPECT_THAT(sheet.at(0, 9), ElementsAre(208, 32, 32));
  EXPECT_THAT(sheet.at(1, 0), ElementsAre(77, 77, 77));
  EXPECT_THAT(sheet.at(1, 0, kSheetCell / 2 - 1), ElementsAre(77, 77, 77)) << "as wide as the cell";
  EXPECT_THAT(sheet.at(1, 1), ElementsAre(208, 32, 32));
  EXPECT_THAT(sheet.at(1, 2), ElementsAre(255, 255, 255));
  EXPECT_EQ(Sheet(*open(fs)).sheet.png, sheet.sheet.png);
}

TEST(ContactSheet, IsMadeOfRawPixelsToo) {
  MemoryFileSystem fs;
  put_file(fs, "/mnist/train-images-idx3-ubyte", idx_images(3, 4, 4));
  put_file(fs, "/mnist/train-labels-idx1-ubyte", idx_header({3}) + std::string("\3\0\3", 3));
  recipe::DatasetSpec spec;
  spec.path = "/mnist";
  spec.format = "idx";
  spec.split = "train";
  const auto set = open_dataset(fs, spec, {});
  const Sheet sheet(*set);
  EXPECT_THAT(sheet.sheet.labels, ElementsAre(0, 3)) << "classes without samples have no row";
  EXPECT_EQ(sheet.sheet.width, kSheetGap + 2 * kStep);
}

TEST(ContactSheet, NeedsPictures) {
  MemoryFileSystem fs;
  put_file(fs, "/t.csv", "a,y\n1,0\n");
  recipe::DatasetSpec spec;
  spec.path = "/t.csv";
  spec.format = "csv";
  spec.target = {"y"};
  EXPECT_THROW(Sheet(*open_dataset(fs, spec, {})), Error);
}

}  // namespace
}  // namespace skytrain::data
