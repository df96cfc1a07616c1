#include "skytrain/data/synthetic.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/mix.h"

namespace skytrain::data {
namespace {

constexpr int kGrid = 5;        // a pattern is kGrid x kGrid random grey values, interpolated bilinearly
constexpr int kMaxShift = 2;    // pixels, in each direction
constexpr int kNoise = 112;     // noise is triangular in (-kNoise, kNoise)
constexpr int kFraction = 256;  // interpolation weights are in 1/256

// Where a pixel's row (or column) lies between two lines of the grid.
struct Tap {
  int line;    // 0..kGrid-2
  int weight;  // of line + 1, 0..kFraction
};

// Taps of pixels 0..length-1, as seen when the pattern is shifted by `shift` pixels (borders repeat).
void fill_taps(std::vector<Tap>& taps, int64_t length, int64_t shift) {
  taps.resize(static_cast<size_t>(length));
  const int64_t last = std::max<int64_t>(length - 1, 1);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t scaled = std::clamp<int64_t>(i + shift, 0, length - 1) * (kGrid - 1) * kFraction / last;
    const int64_t line = std::min<int64_t>(scaled / kFraction, kGrid - 2);
    taps[static_cast<size_t>(i)] = Tap{static_cast<int>(line), static_cast<int>(scaled - line * kFraction)};
  }
}

class Painter {
 public:
  Painter(const recipe::DatasetSpec& spec, uint64_t seed, bool eval)
      : channels_(spec.channels),
        height_(spec.height),
        width_(spec.width),
        seed_(seed),
        stream_(eval ? Stream::kSyntheticEval : Stream::kSyntheticTrain),
        max_shift_y_(std::min<int64_t>(kMaxShift, spec.height / 8)),
        max_shift_x_(std::min<int64_t>(kMaxShift, spec.width / 8)) {}

  void paint(uint64_t index, uint64_t label, uint8_t* out) {
    const uint64_t pattern = make_key(Stream::kSyntheticClass, seed_, label);
    const uint64_t key = make_key(stream_, seed_, index);
    const uint64_t shift = random_bits(key, 0);
    fill_taps(rows_, height_, draw_shift(static_cast<uint32_t>(shift), max_shift_y_));
    fill_taps(columns_, width_, draw_shift(static_cast<uint32_t>(shift >> 32), max_shift_x_));
    uint64_t noise = 0, drawn = 0;
    for (int64_t c = 0; c < channels_; ++c) {
      std::array<int, kGrid * kGrid> grid;
      for (size_t i = 0; i < grid.size(); ++i) {
        grid[i] = static_cast<int>(random_bits(pattern, static_cast<uint64_t>(c) * grid.size() + i) & 255);
      }
      for (int64_t y = 0; y < height_; ++y) {
        const Tap row = rows_[static_cast<size_t>(y)];
        const int* upper = grid.data() + row.line * kGrid;
        std::array<int, kGrid> line;
        for (size_t i = 0; i < kGrid; ++i) {
          line[i] = upper[i] * (kFraction - row.weight) + upper[i + kGrid] * row.weight;
        }
        for (int64_t x = 0; x < width_; ++x) {
          const Tap column = columns_[static_cast<size_t>(x)];
          const size_t at = static_cast<size_t>(column.line);
          const int smooth = (line[at] * (kFraction - column.weight) + line[at + 1] * column.weight) >> 16;
          if (drawn % 4 == 0) noise = random_bits(key, 1 + drawn / 4);  // two bytes for each pixel
          ++drawn;
          const int two_bytes = static_cast<int>(noise & 255) + static_cast<int>(noise >> 8 & 255) - 255;
          noise >>= 16;
          *out++ = static_cast<uint8_t>(std::clamp(smooth + two_bytes * kNoise / 256, 0, 255));
        }
      }
    }
  }

 private:
  static int64_t draw_shift(uint32_t bits, int64_t max) {
    return static_cast<int64_t>(below(bits, static_cast<uint64_t>(2 * max + 1))) - max;
  }

  const int64_t channels_, height_, width_;
  const uint64_t seed_;
  const Stream stream_;
  const int64_t max_shift_y_, max_shift_x_;
  std::vector<Tap> rows_, columns_;
};

}  // namespace

std::unique_ptr<SyntheticDataset> SyntheticDataset::make(const recipe::DatasetSpec& spec, int64_t classes,
                                                         uint64_t seed, bool eval) {
  const std::string where = eval ? "data.eval" : "data.train";
  const auto outside = [](int64_t extent) { return extent < 1 || extent > 65536; };
  if (outside(spec.channels) || outside(spec.height) || outside(spec.width)) {
    throw Error(ErrorKind::kRecipe, where,
                str("images of ", spec.channels, " x ", spec.height, " x ", spec.width, " cannot be made"),
                "channels, height and width are 1..65536");
  }
  if (spec.samples == 0 || classes < 1 || classes > INT32_MAX) {
    throw Error(ErrorKind::kRecipe, where, str(spec.samples, " samples of ", classes, " classes cannot be made"));
  }
  const uint64_t stride = static_cast<uint64_t>(spec.channels * spec.height * spec.width);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(stride, spec.samples, &bytes) || bytes > kMaxBytes) {
    throw Error(ErrorKind::kRecipe, where,
                str(spec.samples, " synthetic samples of ", spec.channels, " x ", spec.height, " x ", spec.width,
                    " are more than the ", human_bytes(kMaxBytes), " that are kept in memory"),
                str("at this size, ask for at most ", kMaxBytes / stride, " samples"));
  }
  PixelBlock pixels{.block = allocate_bytes(bytes, where), .offset = 0, .size = bytes};
  std::vector<int32_t> labels(spec.samples);
  Painter painter(spec, seed, eval);
  for (uint64_t i = 0; i < spec.samples; ++i) {
    const uint64_t label = i % static_cast<uint64_t>(classes);
    labels[i] = static_cast<int32_t>(label);
    painter.paint(i, label, pixels.block.get() + i * stride);
  }
  DatasetInfo info;
  info.format = "synthetic";
  info.samples = spec.samples;
  info.channels = spec.channels;
  info.height = spec.height;
  info.width = spec.width;
  return std::unique_ptr<SyntheticDataset>(
      new SyntheticDataset(std::move(info), std::move(pixels), std::move(labels), {{"synthetic", spec.samples}}));
}

}  // namespace skytrain::data
