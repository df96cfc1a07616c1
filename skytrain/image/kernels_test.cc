#include "skytrain/image/kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "skytrain/base/text.h"

namespace skytrain::image {
namespace {

std::vector<uint8_t> random_bytes(int64_t size, std::mt19937& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  // Many of the ends of the range, where sums are cut off.
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 4 == 0 ? random() % 2 * 255 : random());
  return bytes;
}

int64_t draw(int64_t low, int64_t high, std::mt19937& random) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

TEST(Kernels, AllScaleLinesAlike) {
  std::mt19937 random(1);
  Taps16 taps;
  for (int i = 0; i < 3000; ++i) {
    const int64_t from = draw(1, i % 3 == 0 ? 12 : 1200, random), to = draw(1, 300, random);
    const int64_t begin = i % 2 == 0 ? 0 : draw(0, to - 1, random), count = draw(1, to - begin, random);
    const Filter filter = i % 5 == 0 ? Filter::kBicubic : Filter::kBilinear;
    taps.set({filter, from, to, begin, count, i % 7 == 0});
    taps.set_blocks();
    // Exactly as long as promised, so that AddressSanitizer sees a step beyond.
    const std::vector<uint8_t> line = random_bytes(4 * (taps.end() - taps.begin() + 3), random);
    std::vector<uint8_t> expected(static_cast<size_t>(4 * count + 15) / 16 * 16), got(expected.size());
    kScalarKernels.scale_line(line.data(), taps, expected.data());
    for (const Kernels* kernels : runnable_kernels()) {
      std::fill(got.begin(), got.end(), 0xaa);
      kernels->scale_line(line.data(), taps, got.data());
      ASSERT_EQ(std::memcmp(expected.data(), got.data(), static_cast<size_t>(4 * count)), 0)
          << kernels->name << ": " << from << " to " << to << ", " << count << " from " << begin;
    }
  }
}

TEST(Kernels, AllBlendLinesAlike) {
  std::mt19937 random(2);
  Taps16 taps;
  for (int i = 0; i < 300; ++i) {
    const int64_t from = draw(1, 400, random), to = draw(1, 60, random);
    taps.set({i % 3 == 0 ? Filter::kBicubic : Filter::kBilinear, from, to, 0, to, false});
    const int64_t bytes = kLineAlignment * draw(1, 5, random);
    const std::vector<uint8_t> content = random_bytes(bytes * from, random);
    std::vector<const uint8_t*> lines;
    std::vector<uint8_t> expected(static_cast<size_t>(bytes)), got(expected.size());
    for (int64_t y = 0; y < to; ++y) {
      lines.clear();
      for (int64_t k = 0; k < taps.used(y); ++k) {
        lines.push_back(content.data() + (taps.begin() + taps.first(y) + k) * bytes);
      }
      kScalarKernels.blend_lines(lines.data(), taps.weights(y), taps.used(y), taps.precision(), bytes, expected.data());
      for (const Kernels* kernels : runnable_kernels()) {
        kernels->blend_lines(lines.data(), taps.weights(y), taps.used(y), taps.precision(), bytes, got.data());
        ASSERT_EQ(expected, got) << kernels->name << ": " << from << " to " << to;
      }
    }
  }
}

TEST(Kernels, AllWriteLinesAlike) {
  std::mt19937 random(3);
  const float means[] = {0.485f, 0.456f, 0.406f}, stds[] = {0.229f, 0.224f, 0.225f};
  OutputSpec spec = normalized(means, stds);
  for (int64_t pixels = 1; pixels <= 300; ++pixels) {
    const std::vector<uint8_t> line = random_bytes(4 * pixels, random);
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16, ElementType::kUint8}) {
        spec.layout = layout;
        spec.type = type;
        // Planes of one line; what is not the line's keeps its content.
        const auto size = static_cast<size_t>(3 * pixels * element_size(type));
        std::vector<uint8_t> expected(size, 0xcc), got = expected;
        spec.past_cache = pixels % 2 == 0;
        kScalarKernels.write_line(line.data(), pixels, spec, pixels, expected.data());
        for (const Kernels* kernels : runnable_kernels()) {
          std::fill(got.begin(), got.end(), 0xcc);
          kernels->write_line(line.data(), pixels, spec, pixels, got.data());
          ASSERT_EQ(expected, got) << kernels->name << ": " << pixels << " pixels, type " << static_cast<int>(type);
        }
      }
    }
  }
}

TEST(Kernels, ElementsAreScaledAndOffset) {
  const uint8_t pixels[] = {0, 128, 255, 9, 51, 102, 204, 9};
  OutputSpec spec;
  spec.scale[1] = 0.5f;
  spec.offset[1] = -1;
  for (const Kernels* kernels : runnable_kernels()) {
    float out[6] = {};
    kernels->write_line(pixels, 2, spec, 2, out);
    EXPECT_EQ(out[0], 0);
    EXPECT_NEAR(out[1], 0.2f, 1e-7);
    EXPECT_EQ(out[2], 63);
    EXPECT_EQ(out[3], 50);
    EXPECT_NEAR(out[4], 1, 1e-7);
    EXPECT_NEAR(out[5], 0.8f, 1e-7);
    // 1 is 0x3f80 in bfloat16, 63 is 0x427c.
    spec.type = ElementType::kBfloat16;
    uint16_t halves[6] = {};
    kernels->write_line(pixels, 2, spec, 2, halves);
    EXPECT_EQ(halves[2], 0x427c);
    EXPECT_EQ(halves[4], 0x3f80);
    spec.type = ElementType::kFloat32;
  }
}

}  // namespace
}  // namespace skytrain::image
