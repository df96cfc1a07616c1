#include "skytrain/image/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/picture_test_data.h"
#include "skytrain/image/region_test_data.h"
#include "skytrain/image/resample.h"

namespace skytrain::image {
namespace {

std::string read(const std::string& name) { return FileSystem::real().read_file("tests/testdata/" + name); }

std::vector<uint8_t> resized(const std::string& file, const Region& region, const ResizeSpec& resize,
                             OutputSpec output = {.layout = Layout::kHwc, .type = ElementType::kUint8}) {
  static Scratch scratch;
  const Size size = output_size(resize);
  std::vector<uint8_t> out(static_cast<size_t>(3 * size.width * size.height * element_size(output.type)), 0xaa);
  decode_resized(bytes_of(file), "x", region, resize, output, out.data(), scratch);
  return out;
}

// Mean of the differences, none of which may exceed 1.
double difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  int64_t sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_LE(std::abs(a[i] - b[i]), 1) << "byte " << i;
    sum += std::abs(a[i] - b[i]);
  }
  return static_cast<double>(sum) / static_cast<double>(a.size());
}

TEST(Resize, IsThatOfTorchvision) {
  const std::string photo = read("pictures/photo.rgb.png");
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/testdata/image")) {
    const std::string name = entry.path().filename().string();
    Region region;
    ResizeSpec resize;
    char filter[16] = {};
    if (std::sscanf(name.c_str(), "resized_%ld_%ld_%ld_%ld_to_%ld_%ld_%15[a-z].png", &region.left, &region.top,
                    &region.width, &region.height, &resize.size.width, &resize.size.height, filter) != 7) {
      continue;
    }
    SCOPED_TRACE(name);
    ++cases;
    resize.filter = std::string_view(filter) == "bicubic" ? Filter::kBicubic : Filter::kBilinear;
    const std::string file = read("image/" + name);
    Scratch scratch;
    const Picture expected = decode_picture(bytes_of(file), name, scratch);
    EXPECT_LT(difference(resized(photo, region, resize),
                         {expected.pixels, expected.pixels + 3 * expected.width * expected.height}),
              0.02);
  }
  EXPECT_EQ(cases, 16);
}

TEST(Resize, WindowIsACropOfTheWhole) {
  const std::string file = encode_jpeg(90, 70, noise(90, 70), {.across = 2, .down = 2});
  const Region region{3, 5, 80, 60};
  const std::vector<uint8_t> whole = resized(file, region, {.size = {41, 33}});
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i) {
    const Region window = draw_region({41, 33}, random);
    const std::vector<uint8_t> part = resized(file, region, {.size = {41, 33}, .window = window});
    for (int64_t y = 0; y < window.height; ++y) {
      const auto expected = whole.begin() + 3 * ((window.top + y) * 41 + window.left);
      ASSERT_TRUE(std::equal(expected, expected + 3 * window.width, part.begin() + 3 * y * window.width));
    }
  }
}

TEST(Resize, CenterCropIsTheResamplersOwn) {
  for (const auto& [width, height] : {std::pair{90, 70}, {70, 91}, {33, 200}}) {
    const std::string file = encode_jpeg(width, height, noise(width, height));
    for (const auto& [resize, size] : {std::pair{32, 28}, {64, 56}, {100, 100}, {9, 2}}) {
      Scratch scratch;
      const Picture picture = decode_picture(bytes_of(file), "x", scratch);
      std::vector<uint8_t> expected(static_cast<size_t>(3 * size * size));
      resize_and_crop(picture, resize, size, scratch, "x", expected.data());
      const std::vector<uint8_t> got =
          resized(file, {0, 0, width, height}, resize_and_center_crop({width, height}, resize, size),
                  {.layout = Layout::kChw, .type = ElementType::kUint8});
      EXPECT_LT(difference(got, expected), 0.03) << resize << " " << size;
    }
  }
}

TEST(Resize, FlipMirrorsTheOutput) {
  const std::string file = encode_png(50, 40, noise(50, 40));
  const ResizeSpec resize{.size = {23, 17}};
  OutputSpec output{.layout = Layout::kHwc, .type = ElementType::kUint8};
  const std::vector<uint8_t> plain = resized(file, {1, 2, 45, 36}, resize, output);
  output.flip = true;
  const std::vector<uint8_t> flipped = resized(file, {1, 2, 45, 36}, resize, output);
  for (size_t y = 0; y < 17; ++y) {
    for (size_t x = 0; x < 23; ++x) {
      for (size_t c = 0; c < 3; ++c) ASSERT_EQ(plain[(y * 23 + x) * 3 + c], flipped[(y * 23 + 22 - x) * 3 + c]);
    }
  }
}

TEST(Resize, OutputsAreThoseOfThePixels) {
  const std::string file = encode_jpeg(60, 44, noise(60, 44), {.across = 2, .down = 2});
  const Region region{4, 4, 50, 40};
  const ResizeSpec resize{.size = {19, 13}};
  const float mean[] = {0.5f, 0.25f, 0.125f}, std[] = {0.25f, 0.5f, 1};
  OutputSpec output = normalized(mean, std);
  Scratch scratch;
  for (const bool flip : {false, true}) {
    output.flip = flip;
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16, ElementType::kUint8}) {
        output.layout = layout;
        output.type = type;
        const std::vector<uint8_t> fused = resized(file, region, resize, output);
        std::vector<uint8_t> split(fused.size());
        const uint8_t* pixels = decode_resized_pixels(bytes_of(file), "x", region, resize, false, scratch);
        write_pixels(pixels, resize.size, output, split.data());
        EXPECT_EQ(fused, split);
        OutputSpec unflipped = output;
        unflipped.flip = false;
        pixels = decode_resized_pixels(bytes_of(file), "x", region, resize, flip, scratch);
        write_pixels(pixels, resize.size, unflipped, split.data());
        EXPECT_EQ(fused, split);
      }
    }
  }
  // (pixel / 255 - mean) / std, to a few bits.
  output.flip = false;
  output.layout = Layout::kChw;
  output.type = ElementType::kUint8;
  const std::vector<uint8_t> pixels = resized(file, region, resize, output);
  output.type = ElementType::kFloat32;
  const std::vector<uint8_t> bytes = resized(file, region, resize, output);
  const auto* elements = reinterpret_cast<const float*>(bytes.data());
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t c = i / (19 * 13);
    EXPECT_NEAR(elements[i], (static_cast<float>(pixels[i]) / 255 - mean[c]) / std[c], 1e-6);
  }
}

TEST(Resize, OneColourStaysIt) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 500}, {500, 1}, {64, 17}, {3000, 2}}) {
    std::string pixels;
    for (int i = 0; i < width * height; ++i) pixels += "\xff\x01\x5d";
    const std::string file = encode_png(width, height, pixels);
    for (const auto& [to_width, to_height] : {std::pair{1, 1}, {7, 3}, {96, 300}}) {
      const std::vector<uint8_t> out =
          resized(file, {0, 0, width, height}, {.size = {to_width, to_height}, .filter = Filter::kBicubic});
      for (size_t i = 0; i < out.size(); i += 3) {
        ASSERT_EQ(out[i], 255);
        ASSERT_EQ(out[i + 1], 1);
        ASSERT_EQ(out[i + 2], 0x5d);
      }
    }
  }
}

TEST(Resize, WindowOutsideIsABug) {
  const std::string file = encode_png(5, 4, noise(5, 4));
  for (const Region& window : {Region{0, 0, 9, 1}, Region{8, 0, 1, 1}, Region{0, -1, 1, 1}, Region{0, 0, 1, 0}}) {
    EXPECT_THROW(resized(file, {0, 0, 5, 4}, {.size = {8, 8}, .window = window}), Error);
  }
}

}  // namespace
}  // namespace skytrain::image
