#include "skytrain/data/contact_sheet.h"

#include <algorithm>
#include <map>
#include <span>

#include "skytrain/base/error.h"
#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/raw_as_png.h"
#include "skytrain/image/png_writer.h"
#include "skytrain/image/resize.h"

namespace skytrain::data {
namespace {

constexpr uint8_t kBackground = 255, kRed[] = {208, 32, 32};

// Samples of a row.
struct Row {
  int64_t label = 0;
  std::vector<uint64_t> sound, broken;
};

// Of `wanted` of `count` things, which one is the i-th.
uint64_t at_even_distance(uint64_t i, uint64_t wanted, uint64_t count) { return i * count / wanted; }

std::vector<Row> choose_rows(const Dataset& dataset, const Inspection& inspection) {
  std::map<int64_t, Row> rows;
  for (size_t label = 0; label < inspection.per_class.size() && rows.size() < kSheetRows; ++label) {
    if (inspection.per_class[label] == 0) continue;
    const auto number = static_cast<int64_t>(label);
    rows[number].label = number;
  }
  std::map<int64_t, uint64_t> broken;  // by label
  for (const Inspection::Broken& one : inspection.broken) {
    const auto row = rows.find(dataset.label(one.index));
    if (row == rows.end()) continue;
    ++broken[row->first];
    if (row->second.broken.size() < kSheetBroken) row->second.broken.push_back(one.index);
  }
  std::map<int64_t, uint64_t> seen;  // sound ones, by label
  auto next_broken = inspection.broken.begin();
  for (uint64_t i = 0; i < dataset.info().samples; ++i) {
    if (next_broken != inspection.broken.end() && next_broken->index == i) {
      ++next_broken;
      continue;
    }
    const int64_t label = dataset.label(i);
    const auto row = rows.find(label);
    if (row == rows.end()) continue;
    std::vector<uint64_t>& chosen = row->second.sound;
    const uint64_t count = inspection.per_class[static_cast<size_t>(label)] - broken[label];
    const uint64_t wanted = std::min<uint64_t>(count, kSheetColumns - row->second.broken.size());
    if (chosen.size() < wanted && seen[label]++ == at_even_distance(chosen.size(), wanted, count)) chosen.push_back(i);
  }
  std::vector<Row> all;
  all.reserve(rows.size());
  for (auto& [label, row] : rows) all.push_back(std::move(row));
  return all;
}

class Canvas {
 public:
  Canvas(size_t rows, size_t columns)
      : width_(extent(columns)), height_(extent(rows)), rgb_(static_cast<size_t>(3 * width_ * height_), kBackground) {}

  // A picture's pixels (4 bytes each), in the middle of a cell.
  void put(size_t row, size_t column, const uint8_t* rgbx, const image::Size& size) {
    const int64_t left = place(column) + (kSheetCell - size.width) / 2;
    const int64_t top = place(row) + (kSheetCell - size.height) / 2;
    for (int64_t y = 0; y < size.height; ++y) {
      uint8_t* out = at(left, top + y);
      for (int64_t x = 0; x < size.width; ++x, rgbx += 4) out = std::copy_n(rgbx, 3, out);
    }
  }
  void put_broken(size_t row, size_t column) {
    for (int64_t y = 0; y < kSheetCell; ++y) {
      uint8_t* out = at(place(column), place(row) + y);
      for (int64_t x = 0; x < kSheetCell; ++x) out = std::copy_n(kRed, 3, out);
    }
  }
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  std::string png() const { return image::png_file(rgb_.data(), {width_, height_}, 3, "the sheet"); }

 private:
  static int64_t place(size_t cell) { return kSheetGap + static_cast<int64_t>(cell) * (kSheetCell + kSheetGap); }
  static int64_t extent(size_t cells) { return place(cells); }
  uint8_t* at(int64_t x, int64_t y) { return rgb_.data() + 3 * (y * width_ + x); }

  int64_t width_, height_;
  std::vector<uint8_t> rgb_;
};

// The whole of a picture, as large as a cell takes it.
image::Size fitted(const image::Size& picture) {
  const int64_t longer = std::max(picture.width, picture.height);
  const auto scaled = [&](int64_t side) { return std::max<int64_t>(1, (side * kSheetCell + longer / 2) / longer); };
  return {scaled(picture.width), scaled(picture.height)};
}

void draw(const Dataset& dataset, uint64_t index, Scratch& scratch, Canvas& canvas, size_t row, size_t column) {
  const EncodedPictures* const pictures = dataset.encoded_pictures();
  std::string raw;
  std::span<const uint8_t> file;
  image::Orientation orientation;
  if (pictures != nullptr) {
    file = pictures->encoded(index, scratch);
    orientation = pictures->orientation(file);
  } else {
    raw = sample_as_png(dataset, index, scratch);
    file = {reinterpret_cast<const uint8_t*>(raw.data()), raw.size()};
    scratch.path = dataset.name(index);
  }
  const image::Size size = image::upright_size(image::picture_size(file, scratch.path), orientation);
  const image::ResizeSpec resize{.size = fitted(size)};
  const uint8_t* const rgbx = image::decode_resized_pixels(file, scratch.path, {0, 0, size.width, size.height}, resize,
                                                           /*flip=*/false, scratch, orientation);
  canvas.put(row, column, rgbx, resize.size);
  scratch.give_back_excess();
}

}  // namespace

ContactSheet make_contact_sheet(const Dataset& dataset, const Inspection& inspection) {
  if (dataset.encoded_pictures() == nullptr && !has_raw_pictures(dataset)) {
    throw Error(ErrorKind::kData, dataset.info().format, "its samples are no pictures, so there is nothing to show");
  }
  const std::vector<Row> rows = choose_rows(dataset, inspection);
  size_t columns = 0;
  for (const Row& row : rows) columns = std::max(columns, row.sound.size() + row.broken.size());
  Canvas canvas(rows.size(), columns);
  ContactSheet sheet{.png = {}, .labels = {}, .width = canvas.width(), .height = canvas.height()};
  Scratch scratch;
  for (size_t r = 0; r < rows.size(); ++r) {
    sheet.labels.push_back(rows[r].label);
    size_t column = 0;
    for (const uint64_t index : rows[r].sound) draw(dataset, index, scratch, canvas, r, column++);
    for (size_t i = 0; i < rows[r].broken.size(); ++i) canvas.put_broken(r, column++);
  }
  sheet.png = canvas.png();
  return sheet;
}

}  // namespace skytrain::data
