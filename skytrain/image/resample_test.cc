#include "skytrain/image/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"

namespace skytrain::image {
namespace {

struct Rgb {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
  Picture picture() const { return {pixels.data(), width, height}; }
};

Rgb read(const std::string& name) {
  const std::string file = FileSystem::real().read_file("tests/testdata/pictures/" + name);
  Scratch scratch;
  const Picture p = decode_picture({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, name, scratch);
  return {p.width, p.height, {p.pixels, p.pixels + 3 * p.width * p.height}};
}

Rgb transposed(const Rgb& rgb) {
  Rgb out{rgb.height, rgb.width, {}};
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      for (int64_t c = 0; c < 3; ++c)
        out.pixels.push_back(rgb.pixels[static_cast<size_t>(3 * (x * rgb.width + y) + c)]);
    }
  }
  return out;
}

// CHW.
std::vector<uint8_t> planes(const Rgb& rgb) {
  std::vector<uint8_t> out;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = c; i < rgb.pixels.size(); i += 3) out.push_back(rgb.pixels[i]);
  }
  return out;
}

std::vector<uint8_t> resized(const Rgb& rgb, int64_t resize, int64_t size) {
  Scratch scratch;
  std::vector<uint8_t> out(static_cast<size_t>(3 * size * size), 0xaa);
  resize_and_crop(rgb.picture(), resize, size, scratch, "x", out.data());
  return out;
}

TEST(Resample, EqualsPillow) {
  const Rgb wide = read("photo.rgb.png");
  const std::vector<std::pair<int, int>> crops = {{24, 24}, {24, 16}, {29, 29}, {29, 8}, {80, 64}, {5, 3}, {1, 1}};
  for (const auto& [resize, size] : crops) {
    EXPECT_EQ(resized(wide, resize, size), planes(read(str("resized_wide_", resize, "_", size, ".png"))))
        << resize << " " << size;
    EXPECT_EQ(resized(transposed(wide), resize, size), planes(read(str("resized_tall_", resize, "_", size, ".png"))))
        << resize << " " << size;
  }
}

TEST(Resample, SameSizeIsACopy) {
  const Rgb photo = read("photo.rgb.png");  // 43 x 29
  const std::vector<uint8_t> all = planes(photo), middle = resized(photo, 29, 29);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < 29; ++y) {
      for (int64_t x = 0; x < 29; ++x) {
        ASSERT_EQ(middle[static_cast<size_t>((c * 29 + y) * 29 + x)],
                  all[static_cast<size_t>((c * 29 + y) * 43 + x + 7)]);
      }
    }
  }
}

TEST(Resample, OneColourStaysIt) {
  for (const auto& [width, height] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 500}, {500, 1}, {64, 17}}) {
    Rgb flat{width, height, {}};
    for (int64_t i = 0; i < width * height; ++i) flat.pixels.insert(flat.pixels.end(), {255, 0, 93});
    for (const int64_t size : {1, 7, 96}) {
      const std::vector<uint8_t> out = resized(flat, size, size);
      const auto plane = static_cast<ptrdiff_t>(size * size);
      EXPECT_EQ(std::count(out.begin(), out.begin() + plane, 255), plane);
      EXPECT_EQ(std::count(out.begin() + plane, out.begin() + 2 * plane, 0), plane);
      EXPECT_EQ(std::count(out.begin() + 2 * plane, out.end(), 93), plane);
    }
  }
}

// A plain bilinear reduction takes two of the ten lines that a pixel stands for, and costs a percent of accuracy.
TEST(Resample, AllPixelsCount) {
  Rgb stripes{80, 80, {}};
  for (int64_t y = 0; y < 80; ++y) {
    for (int64_t x = 0; x < 80; ++x) stripes.pixels.insert(stripes.pixels.end(), 3, y % 2 == 0 ? 255 : 0);
  }
  for (const uint8_t pixel : resized(stripes, 8, 8)) ASSERT_NEAR(pixel, 127.5, 5);
}

TEST(Resample, CropsOddRemaindersAsPythonRounds) {
  Rgb columns{8, 1, {}};
  for (int64_t x = 0; x < 8; ++x) columns.pixels.insert(columns.pixels.end(), 3, static_cast<uint8_t>(x));
  for (const auto& [width, left] :
       std::vector<std::pair<int64_t, int>>{{2, 0}, {3, 1}, {4, 2}, {5, 2}, {6, 2}, {7, 3}, {8, 4}}) {
    Rgb part{width, 1, {columns.pixels.begin(), columns.pixels.begin() + 3 * width}};
    EXPECT_EQ(resized(part, 1, 1)[0], left) << width;  // round((width - 1) / 2): 0.5 -> 0, 1.5 -> 2, 2.5 -> 2
  }
}

TEST(Resample, ScratchIsReused) {
  const Rgb photo = read("photo.rgb.png");
  Scratch scratch;
  std::vector<uint8_t> small(3 * 5 * 5), again(3 * 5 * 5), large(3 * 80 * 80);
  resize_and_crop(photo.picture(), 5, 5, scratch, "x", small.data());
  resize_and_crop(photo.picture(), 80, 80, scratch, "x", large.data());
  const uint8_t* memory = scratch.narrowed.data();
  resize_and_crop(photo.picture(), 5, 5, scratch, "x", again.data());
  EXPECT_EQ(small, again);
  EXPECT_EQ(scratch.narrowed.data(), memory);
}

}  // namespace
}  // namespace skytrain::image
