#include "skytrain/observe/png_data_uri.h"

#include <gtest/gtest.h>
#include <png.h>

#include <vector>

#include "skytrain/base/text.h"

namespace skytrain::observe {
namespace {

struct Decoded {
  unsigned width = 0, height = 0;
  std::vector<unsigned char> rgb;
};

Decoded decode(const std::string& uri) {
  const std::string prefix = "data:image/png;base64,";
  EXPECT_EQ(uri.substr(0, prefix.size()), prefix);
  const auto bytes = decode_base64(std::string_view(uri).substr(prefix.size()));
  EXPECT_TRUE(bytes);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(png_image_begin_read_from_memory(&png, bytes->data(), bytes->size())) << png.message;
  png.format = PNG_FORMAT_RGB;
  Decoded out{png.width, png.height, std::vector<unsigned char>(PNG_IMAGE_SIZE(png))};
  EXPECT_TRUE(png_image_finish_read(&png, nullptr, out.rgb.data(), 0, nullptr)) << png.message;
  return out;
}

TEST(Base64, ComesBack) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(base64(bytes)), bytes);
    bytes.push_back(static_cast<char>(i * 37));
  }
}

TEST(Base64, RefusesWhatItIsNot) {
  for (const char* text :
       {"A", "AA", "AAA", "AA=A", "====", "A===", "AAAA====", "AA A", "AA\nA", "AA-_", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

TEST(PngDataUri, KeepsGreyPixels) {
  std::string problem;
  const auto uri = png_data_uri({1, 2, 3, std::string("\x00\x10\x20\x80\xf0\xff", 6)}, &problem);
  ASSERT_TRUE(uri) << problem;
  const Decoded image = decode(*uri);
  EXPECT_EQ(image.width, 3u);
  EXPECT_EQ(image.height, 2u);
  EXPECT_EQ(image.rgb,
            (std::vector<unsigned char>{0, 0, 0, 16, 16, 16, 32, 32, 32, 128, 128, 128, 240, 240, 240, 255, 255, 255}));
}

TEST(PngDataUri, TurnsPlanesIntoPixels) {
  std::string problem;
  const auto uri = png_data_uri({3, 1, 2, std::string("\x01\x02\x03\x04\x05\x06", 6)}, &problem);  // R R G G B B
  ASSERT_TRUE(uri) << problem;
  EXPECT_EQ(decode(*uri).rgb, (std::vector<unsigned char>{1, 3, 5, 2, 4, 6}));
}

TEST(PngDataUri, AveragesLargePicturesDown) {
  Picture picture{1, 700, 300, std::string(700 * 300, '\0')};
  for (int y = 0; y < 700; ++y) {
    for (int x = 0; x < 300; ++x)
      picture.pixels[static_cast<size_t>(y * 300 + x)] = static_cast<char>(x < 150 ? 200 : y % 3 * 90);
  }
  std::string problem;
  const auto uri = png_data_uri(picture, &problem);
  ASSERT_TRUE(uri) << problem;
  const Decoded image = decode(*uri);
  EXPECT_EQ(image.width, 100u);
  EXPECT_EQ(image.height, 234u);  // 700 / 3, the last row of one source row
  EXPECT_EQ(image.rgb[0], 200);
  EXPECT_EQ(image.rgb[3 * 99], 90);
}

TEST(PngDataUri, RefusesSizesThatDoNotFit) {
  const Picture bad[] = {{1, 28, 28, std::string(783, 'x')},
                         {1, 0, 5, ""},
                         {-1, 28, 28, ""},
                         {1, 1 << 20, 1, "x"},
                         {65536, 65536, 65536, "x"},
                         {3, 2, 2, std::string(4, 'x')}};
  for (const Picture& picture : bad) {
    std::string problem;
    EXPECT_FALSE(png_data_uri(picture, &problem));
    EXPECT_NE(problem, "");
  }
}

}  // namespace
}  // namespace skytrain::observe
