#include "skytrain/image/png_writer.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/picture_test_data.h"
#include "skytrain/image/region_test_data.h"

namespace skytrain::image {
namespace {

std::string written(const std::string& pixels, const Size& size, int64_t channels) {
  return png_file(reinterpret_cast<const uint8_t*>(pixels.data()), size, channels, "x");
}

TEST(PngWriter, PixelsComeBack) {
  Scratch scratch;
  for (const auto& [width, height] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {28, 28}, {37, 5}, {300, 200}}) {
    const std::string pixels = noise(width, height, 3);
    const std::string file = written(pixels, {width, height}, 3);
    const Picture picture = decode_picture(bytes_of(file), "x", scratch);
    ASSERT_EQ(picture.width, width);
    ASSERT_EQ(picture.height, height);
    EXPECT_EQ(std::string(picture.pixels, picture.pixels + 3 * width * height), pixels);
  }
}

TEST(PngWriter, GreyIsReadAsThreeEqualChannels) {
  Scratch scratch;
  const std::string pixels = noise(13, 7, 1), file = written(pixels, {13, 7}, 1);
  const Picture picture = decode_picture(bytes_of(file), "x", scratch);
  for (size_t i = 0; i < 3 * 13 * 7; ++i) ASSERT_EQ(static_cast<char>(picture.pixels[i]), pixels[i / 3]);
}

TEST(PngWriter, SameBytesEachTime) {
  EXPECT_EQ(written(noise(20, 10), {20, 10}, 3), written(noise(20, 10), {20, 10}, 3));
  EXPECT_THROW(written("", {0, 1}, 3), Error);
  EXPECT_THROW(written("ab", {1, 1}, 2), Error);
}

}  // namespace
}  // namespace skytrain::image
