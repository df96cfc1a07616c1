#include "skytrain/image/jpeg_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/picture_test_data.h"
#include "skytrain/image/region_test_data.h"

namespace skytrain::image {
namespace {

using ::testing::HasSubstr;

std::string our_pixels(const std::string& file, Scratch& scratch) {
  const Picture picture = decode_picture(bytes_of(file), "x", scratch);
  return {reinterpret_cast<const char*>(picture.pixels), static_cast<size_t>(3 * picture.width * picture.height)};
}

TEST(JpegEntropy, DecodesAsLibjpegDoes) {
  Scratch scratch;
  unsigned seed = 0;
  for (const int quality : {1, 10, 50, 90, 95, 100}) {
    for (const auto& [across, down] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 1}}) {
      for (const int restart : {0, 1, 5}) {
        for (const bool optimized : {false, true}) {
          const JpegOptions options{
              .quality = quality, .restart_interval = restart, .optimized = optimized, .across = across, .down = down};
          const std::string file = encode_jpeg(83, 61, noise(83, 61, 3, ++seed), options);
          ASSERT_EQ(our_pixels(file, scratch), libjpeg_pixels(file))
              << "quality " << quality << ", " << across << " x " << down << ", restart " << restart;
        }
      }
    }
  }
}

// Blocks with a coefficient in the last place have no end of block: what follows is the next block's.
TEST(JpegEntropy, FullBlocksEndWithoutAnEnd) {
  Scratch scratch;
  std::mt19937 random(5);
  std::string pixels;
  for (int i = 0; i < 64 * 64 * 3; ++i) pixels += static_cast<char>(random());
  for (const bool optimized : {false, true}) {
    const std::string file = encode_jpeg(64, 64, pixels, {.quality = 100, .optimized = optimized});
    EXPECT_EQ(our_pixels(file, scratch), libjpeg_pixels(file));
  }
}

// The end marker alone is no part of the picture.
TEST(JpegEntropy, ReadsNoFurtherThanThePixels) {
  Scratch scratch;
  for (unsigned seed = 1; seed < 40; ++seed) {
    const std::string file = encode_jpeg(40, 24, noise(40, 24, 3, seed));
    const std::string expected = our_pixels(file, scratch);
    EXPECT_EQ(our_pixels(file.substr(0, file.size() - 2), scratch), expected);
    EXPECT_THROW(our_pixels(file.substr(0, file.size() - 3), scratch), Error);
  }
}

TEST(JpegEntropy, FillBytesBeforeMarkersDoNoHarm) {
  Scratch scratch;
  std::string file = encode_jpeg(64, 64, noise(64, 64), {.restart_interval = 4});
  const std::string expected = our_pixels(file, scratch);
  for (const char* marker : {"\xff\xd3", "\xff\xd6", "\xff\xd9"}) file.insert(file.rfind(marker), "\xff\xff");
  EXPECT_EQ(our_pixels(file, scratch), expected);
}

TEST(JpegEntropy, RestartsOutOfOrderAreDamage) {
  Scratch scratch;
  std::string file = encode_jpeg(64, 64, noise(64, 64), {.restart_interval = 4});
  file[file.find("\xff\xd2") + 1] = '\xd5';
  try {
    our_pixels(file, scratch);
    ADD_FAILURE() << "was decoded";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("is a damaged JPEG picture"));
  }
}

}  // namespace
}  // namespace skytrain::image
