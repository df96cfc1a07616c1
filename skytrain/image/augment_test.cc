// Colour, geometry and RandAugment: by hand, and against what torchvision made of a photo.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"
#include "skytrain/image/color.h"
#include "skytrain/image/geometry.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/rand_augment.h"
#include "skytrain/image/region_test_data.h"

namespace skytrain::image {
namespace {

const std::string kFolder = "tests/testdata/image/";

class Canvas {
 public:
  Canvas(int64_t width, int64_t height, const std::vector<uint8_t>& rgb) : width_(width), height_(height) {
    for (size_t i = 0; i < rgb.size(); i += 3) bytes_.insert(bytes_.end(), {rgb[i], rgb[i + 1], rgb[i + 2], 0xee});
  }
  static Canvas read(const std::string& path) {
    const std::string file = FileSystem::real().read_file(path);
    Scratch scratch;
    const Picture p = decode_picture(bytes_of(file), path, scratch);
    return {p.width, p.height, {p.pixels, p.pixels + 3 * p.width * p.height}};
  }

  Pixels pixels() { return {bytes_.data(), width_, height_}; }
  std::vector<int> rgb() const {
    std::vector<int> values;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (i % 4 != 3) values.push_back(bytes_[i]);
    }
    return values;
  }

 private:
  int64_t width_, height_;
  std::vector<uint8_t> bytes_;
};

using Values = std::vector<int>;
constexpr uint8_t kBlack[3] = {};

const std::map<std::string, Operation> kNames = {{"Identity", Operation::kIdentity},
                                                 {"ShearX", Operation::kShearX},
                                                 {"ShearY", Operation::kShearY},
                                                 {"TranslateX", Operation::kTranslateX},
                                                 {"TranslateY", Operation::kTranslateY},
                                                 {"Rotate", Operation::kRotate},
                                                 {"Brightness", Operation::kBrightness},
                                                 {"Color", Operation::kColor},
                                                 {"Contrast", Operation::kContrast},
                                                 {"Sharpness", Operation::kSharpness},
                                                 {"Posterize", Operation::kPosterize},
                                                 {"Solarize", Operation::kSolarize},
                                                 {"AutoContrast", Operation::kAutoContrast},
                                                 {"Equalize", Operation::kEqualize}};

TEST(Augment, IsThatOfTorchvision) {
  int cases = 0;
  ByteBuffer spare;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    char operation[16] = {};
    double parameter = 0;
    if (std::sscanf(name.c_str(), "augmented_%15[A-Za-z]_%lf.png", operation, &parameter) != 2) continue;
    SCOPED_TRACE(name);
    ++cases;
    Canvas canvas = Canvas::read("tests/testdata/pictures/photo.rgb.png");
    if (std::string(operation) == "Hue") {
      adjust_hue(canvas.pixels(), parameter);
    } else {
      augment(canvas.pixels(), {kNames.at(operation), parameter}, kBlack, spare);
    }
    const Values got = canvas.rgb(), expected = Canvas::read(kFolder + name).rgb();
    ASSERT_EQ(got.size(), expected.size());
    int differing = 0, largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      differing += got[i] != expected[i] ? 1 : 0;
      largest = std::max(largest, std::abs(got[i] - expected[i]));
    }
    // torch fuses some products and sums: a result just below a whole number is cut to the one before.
    EXPECT_LE(largest, 1);
    EXPECT_LE(differing, 3) << "of " << got.size();
  }
  EXPECT_EQ(cases, 28);
}

TEST(Augment, MagnitudesAreThoseOfTorchvision) {
  std::istringstream lines(FileSystem::real().read_file(kFolder + "magnitudes.txt"));
  int operations = 0;
  for (std::string line; std::getline(lines, line); ++operations) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    double value = 0;
    for (int bin = 0; words >> value; ++bin) {
      // To the last bit of a float.
      EXPECT_EQ(static_cast<float>(magnitude_of(kNames.at(name), bin, 31, {224, 160})), static_cast<float>(value))
          << name << " " << bin;
    }
  }
  EXPECT_EQ(operations, kOperations);
}

TEST(Color, FactorsScaleAndBlend) {
  const auto changed = [](auto change) {
    Canvas canvas(2, 1, {10, 200, 100, 0, 50, 250});
    change(canvas.pixels());
    return canvas.rgb();
  };
  EXPECT_EQ(changed([](const Pixels& p) { adjust_brightness(p, 1.5f); }), (Values{15, 255, 150, 0, 75, 255}));
  EXPECT_EQ(changed([](const Pixels& p) { adjust_brightness(p, 0); }), (Values{0, 0, 0, 0, 0, 0}));
  // Greys: 0.2989 * 10 + 0.587 * 200 + 0.114 * 100 = 131.79 -> 131 and 57.85 -> 57; their mean is 94.
  EXPECT_EQ(changed([](const Pixels& p) { adjust_saturation(p, 0); }), (Values{131, 131, 131, 57, 57, 57}));
  EXPECT_EQ(changed([](const Pixels& p) { adjust_contrast(p, 0); }), (Values{94, 94, 94, 94, 94, 94}));
  EXPECT_EQ(changed([](const Pixels& p) { adjust_contrast(p, 0.5f); }), (Values{52, 147, 97, 47, 72, 172}));
  EXPECT_EQ(changed([](const Pixels& p) { posterize(p, 1); }), (Values{0, 128, 0, 0, 0, 128}));
  EXPECT_EQ(changed([](const Pixels& p) { posterize(p, 8); }), (Values{10, 200, 100, 0, 50, 250}));
  EXPECT_EQ(changed([](const Pixels& p) { solarize(p, 100); }), (Values{10, 55, 155, 0, 50, 5}));
  // Red 0..10, green 50..200, blue 100..250. The highest value comes out just below 255, as from torch.
  EXPECT_EQ(changed([](const Pixels& p) { autocontrast(p); }), (Values{254, 254, 0, 0, 0, 254}));
}

TEST(Color, HueTurnsTheColourCircle) {
  Canvas canvas(4, 1, {200, 0, 0, 0, 0, 80, 90, 90, 90, 255, 255, 0});
  adjust_hue(canvas.pixels(), 1.0f / 3);
  // Red to green, blue to red, grey stays, yellow to cyan.
  EXPECT_EQ(canvas.rgb(), (Values{0, 200, 0, 80, 0, 0, 90, 90, 90, 0, 255, 255}));
}

TEST(Color, EqualizedValuesAreEquallyFrequent) {
  std::vector<uint8_t> rgb;
  for (int i = 0; i < 1024; ++i) rgb.insert(rgb.end(), 3, static_cast<uint8_t>(100 + i / 256));
  Canvas canvas(1024, 1, rgb);
  equalize(canvas.pixels());
  // Steps of 768 / 255 = 3 pixels: (256 + 1) / 3 = 85.
  const Values got = canvas.rgb();
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[3 * 256], 85);
  EXPECT_EQ(got[3 * 512], 171);
  EXPECT_EQ(got[3 * 1023], 255);
}

TEST(Color, JitterDrawsWithinBoundsInAnyOrder) {
  const ColorJitter jitter{.brightness = {0.6f, 1.4f}, .hue = {-0.1f, 0.1f}};
  KeyedRandom random(3);
  std::map<std::vector<int>, int> orders;
  double sum = 0;
  for (int i = 0; i < 4800; ++i) {
    const ColorChange change = draw_color_change(jitter, random);
    EXPECT_GE(change.brightness, 0.6f);
    EXPECT_LE(change.brightness, 1.4f);
    EXPECT_EQ(change.contrast, 1);
    EXPECT_LE(std::abs(change.hue), 0.1f);
    sum += change.brightness;
    ++orders[std::vector<int>(change.order, change.order + 4)];
  }
  EXPECT_NEAR(sum / 4800, 1, 0.02);
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 200, 70);
}

TEST(Color, StepsComeInTheirOrder) {
  const auto changed = [](std::vector<ColorChange::Step> order) {
    ColorChange change{.brightness = 2, .contrast = 0};
    std::copy(order.begin(), order.end(), change.order);
    Canvas canvas(2, 1, {10, 10, 10, 250, 250, 250});
    change_color(canvas.pixels(), change);
    return canvas.rgb()[0];
  };
  using Change = ColorChange;
  // Greys of 10 and 250 are cut to 9 and 249; of 20 and 255 to 19 and 254.
  EXPECT_EQ(changed({Change::kContrast, Change::kBrightness, Change::kSaturation, Change::kHue}), 255);
  EXPECT_EQ(changed({Change::kBrightness, Change::kContrast, Change::kSaturation, Change::kHue}), 136);
}

TEST(Geometry, MovesPixels) {
  ByteBuffer spare;
  const auto moved = [&](const Affine& affine) {
    Canvas canvas(3, 2, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6});
    const uint8_t fill[3] = {9, 9, 9};
    transform_nearest(canvas.pixels(), affine, fill, spare);
    Values first;
    const Values all = canvas.rgb();
    for (size_t i = 0; i < all.size(); i += 3) first.push_back(all[i]);
    return first;
  };
  EXPECT_EQ(moved({}), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(moved(translation(1, 0)), (Values{9, 1, 2, 9, 4, 5}));
  EXPECT_EQ(moved(translation(-2, 1)), (Values{9, 9, 9, 3, 9, 9}));
  EXPECT_EQ(moved(rotation(180)), (Values{6, 5, 4, 3, 2, 1}));
  // Counter-clockwise: the column of the middle, from the right, becomes the line of the middle.
  Canvas square(3, 3, {1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 0, 0, 6, 0, 0, 7, 0, 0, 8, 0, 0, 9, 0, 0});
  transform_nearest(square.pixels(), rotation(90), kBlack, spare);
  EXPECT_EQ(square.rgb(), (Values{3, 0, 0, 6, 0, 0, 9, 0, 0, 2, 0, 0, 5, 0, 0, 8, 0, 0, 1, 0, 0, 4, 0, 0, 7, 0, 0}));
}

TEST(Geometry, SharpnessBlendsWithASmoothedPicture) {
  ByteBuffer spare;
  std::vector<uint8_t> dot(27, 26);
  dot[12] = 130;  // red of the middle
  const auto middle = [&](float factor) {
    Canvas canvas(3, 3, dot);
    adjust_sharpness(canvas.pixels(), factor, spare);
    return canvas.rgb()[12];
  };
  EXPECT_EQ(middle(0), 66);  // (8 * 26 + 5 * 130) / 13
  EXPECT_EQ(middle(1), 130);
  EXPECT_EQ(middle(0.5f), 98);
  EXPECT_EQ(middle(2), 194);
}

TEST(Geometry, SharpnessOfAnyWidthKeepsTheOutermostPixels) {
  ByteBuffer spare;
  for (int64_t width = 1; width < 14; ++width) {
    const int64_t height = 5;
    std::vector<uint8_t> rgb;
    for (int64_t i = 0; i < 3 * width * height; ++i) rgb.push_back(static_cast<uint8_t>(i * i * 7 + i / 5));
    Canvas canvas(width, height, rgb);
    adjust_sharpness(canvas.pixels(), 0, spare);
    const Values got = canvas.rgb();
    const auto at = [&](int64_t x, int64_t y, int64_t c) {
      return int{rgb[static_cast<size_t>(3 * (y * width + x) + c)]};
    };
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < 3; ++c) {
          int expected = at(x, y, c);
          if (x > 0 && y > 0 && x + 1 < width && y + 1 < height) {
            int sum = 4 * at(x, y, c);
            for (int64_t j = y - 1; j <= y + 1; ++j) {
              for (int64_t k = x - 1; k <= x + 1; ++k) sum += at(k, j, c);
            }
            expected = (2 * sum + 13) / 26;
          }
          ASSERT_EQ(got[static_cast<size_t>(3 * (y * width + x) + c)], expected) << width << ": " << x << ", " << y;
        }
      }
    }
  }
}

TEST(RandAugment, DrawsAllOperationsInBothDirections) {
  KeyedRandom random(4);
  std::map<Operation, int> positive, negative;
  for (int i = 0; i < 14000; ++i) {
    const Augmentation drawn = draw_augmentation({}, {224, 160}, random);
    ++(drawn.magnitude < 0 ? negative : positive)[drawn.operation];
  }
  for (int i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    EXPECT_NEAR(positive[operation] + negative[operation], 1000, 150);
    const bool two = i >= 1 && i <= 9;
    EXPECT_NEAR(negative[operation], two ? 500 : 0, 100);
  }
}

TEST(RandAugment, IsAFunctionOfTheKey) {
  ByteBuffer spare;
  const auto augmented = [&](uint64_t key) {
    Canvas canvas = Canvas::read("tests/testdata/pictures/photo.rgb.png");
    KeyedRandom random(key);
    rand_augment(canvas.pixels(), {.operations = 3, .magnitude = 15}, random, spare);
    return canvas.rgb();
  };
  EXPECT_EQ(augmented(1), augmented(1));
  EXPECT_NE(augmented(1), augmented(2));
}

}  // namespace
}  // namespace skytrain::image
