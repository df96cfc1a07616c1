#include "skytrain/image/orientation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture_test_data.h"
#include "skytrain/image/region_test_data.h"
#include "skytrain/image/resize.h"

namespace skytrain::image {
namespace {

// Of tests/testdata/exif, see make_exif.py there.
std::string file(const std::string& name) { return FileSystem::real().read_file("tests/testdata/exif/" + name); }

struct Rgb {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

Rgb decode(const std::string& encoded, const Orientation& orientation = {}) {
  Scratch scratch;
  const Picture stored = decode_picture(bytes_of(encoded), "x", scratch);
  Rgb rgb{0, 0, std::vector<uint8_t>(static_cast<size_t>(3 * stored.width * stored.height))};
  const Picture upright = turn_upright(stored, orientation, rgb.pixels.data());
  rgb.width = upright.width;
  rgb.height = upright.height;
  return rgb;
}

// At most one level apart, as the goldens were made by another libjpeg and by another order of rounding.
void expect_close(const std::vector<uint8_t>& got, const Rgb& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.pixels.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(int{got[i]} - int{expected.pixels[i]}), 1)
        << what << ": byte " << i << " of " << expected.width << " x " << expected.height;
  }
}

std::vector<uint8_t> resized(const std::string& encoded, const Region& region, const ResizeSpec& resize, bool flip,
                             const Orientation& orientation) {
  const Size size = output_size(resize);
  std::vector<uint8_t> out(static_cast<size_t>(3 * size.width * size.height));
  const OutputSpec output{.layout = Layout::kHwc, .type = ElementType::kUint8, .flip = flip};
  Scratch scratch;
  decode_resized(bytes_of(encoded), "x", region, resize, output, out.data(), scratch, orientation);
  const uint8_t* rgbx = decode_resized_pixels(bytes_of(encoded), "x", region, resize, flip, scratch, orientation);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(rgbx[i / 3 * 4 + i % 3], out[i]);
  return out;
}

TEST(Orientation, PicturesAreTurnedAsPillowDoes) {
  for (int value = 1; value <= 8; ++value) {
    const std::string jpeg = file(str("stored_", value, ".jpg"));
    const Orientation orientation = exif_orientation(bytes_of(jpeg));
    EXPECT_EQ(orientation, orientation_of(value)) << value;
    const Rgb upright = decode(file(str("upright_", value, ".png")));
    const Rgb got = decode(jpeg, orientation);
    EXPECT_EQ(got.width, upright.width) << value;
    expect_close(got.pixels, upright, str("upright ", value));
    const ResizeSpec resize{.size = {12, 9}};
    expect_close(resized(jpeg, {5, 3, 14, 17}, resize, false, orientation), decode(file(str("region_", value, ".png"))),
                 str("region ", value));
    const Size size{upright.width, upright.height};
    EXPECT_EQ(size, upright_size(picture_size(bytes_of(jpeg), "x"), orientation));
    expect_close(
        resized(jpeg, {0, 0, size.width, size.height}, resize_and_center_crop(size, 14, 9), false, orientation),
        decode(file(str("centre_", value, ".png"))), str("centre ", value));
  }
}

TEST(Orientation, IsReadFromPngBeforeAndAfterThePixels) {
  EXPECT_EQ(exif_orientation(bytes_of(file("stored_6.png"))), orientation_of(6));
  EXPECT_EQ(exif_orientation(bytes_of(file("stored_8.png"))), orientation_of(8));
  EXPECT_EQ(decode(file("stored_8.png"), orientation_of(8)).pixels, decode(file("upright_8.png")).pixels);
}

std::string jpeg_with(const std::string& exif) {
  const std::string plain = encode_jpeg(8, 8, blocks(8, 8));
  const size_t length = exif.size() + 8;
  std::string segment = "\xff\xe1";
  segment += static_cast<char>(length >> 8);
  segment += static_cast<char>(length & 255);
  return plain.substr(0, 2) + segment + std::string("Exif\0\0", 6) + exif + plain.substr(2);
}

TEST(Orientation, WhatIsDamagedIsReadAsPillowReadsIt) {
  std::ifstream lines("tests/testdata/exif/exif.txt");
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    std::string exif;
    for (size_t i = 2; i + 1 < line.size(); i += 2)
      exif += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    EXPECT_EQ(exif_orientation(bytes_of(jpeg_with(exif))), orientation_of(line[0] - '0')) << line;
    ++count;
  }
  EXPECT_GT(count, 60);
}

// Files that are cut or changed anywhere: an answer, and no step outside (which the sanitizer would see).
TEST(Orientation, AnyBytesHaveOne) {
  std::mt19937 random(5);
  for (const char* name : {"stored_6.jpg", "stored_6.png", "stored_8.png"}) {
    const std::string whole = file(name);
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
      const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut));
      exif_orientation(part);
    }
    for (int i = 0; i < 3000; ++i) {
      std::vector<uint8_t> changed(whole.begin(), whole.end());
      for (int k = 0; k < 3; ++k)
        changed[random() % std::min<size_t>(100, changed.size())] = static_cast<uint8_t>(random());
      exif_orientation(changed);
    }
  }
}

// Any region and window, turned, is what it is of the picture that was turned first.
TEST(Orientation, RegionsOfTurnedPicturesAreThoseOfUprightOnes) {
  std::mt19937 random(11);
  const std::string encoded = encode_png(37, 23, noise(37, 23));
  for (int value = 1; value <= 8; ++value) {
    const Orientation orientation = orientation_of(value);
    const Rgb upright = decode(encoded, orientation);
    const std::string turned =
        encode_png(upright.width, upright.height, std::string(upright.pixels.begin(), upright.pixels.end()));
    for (int i = 0; i < 40; ++i) {
      const Region region = draw_region({upright.width, upright.height}, random);
      ResizeSpec resize{.size = {1 + static_cast<int64_t>(random() % 40), 1 + static_cast<int64_t>(random() % 40)}};
      if (random() % 2 == 0) resize.window = draw_region(resize.size, random);
      const bool flip = random() % 2 == 0;
      const std::vector<uint8_t> expected = resized(turned, region, resize, flip, {});
      const std::vector<uint8_t> got = resized(encoded, region, resize, flip, orientation);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t k = 0; k < got.size(); ++k) ASSERT_LE(std::abs(int{got[k]} - int{expected[k]}), 1) << value;
    }
  }
}

TEST(Orientation, UprightPicturesComeOutAsBefore) {
  const std::string jpeg = file("stored_1.jpg");
  const ResizeSpec resize{.size = {12, 9}};
  EXPECT_EQ(resized(jpeg, {5, 3, 14, 17}, resize, true, exif_orientation(bytes_of(jpeg))),
            resized(jpeg, {5, 3, 14, 17}, resize, true, {}));
}

}  // namespace
}  // namespace skytrain::image
