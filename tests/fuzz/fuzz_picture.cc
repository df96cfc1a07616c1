// A JPEG or PNG file. Whatever it holds, it is a picture or an Error; a picture is the same
//   - in each region, and of the size that its header tells,
//   - as libjpeg alone has it, where libjpeg has nothing to object (its own entropy decoder against ours).
//
// PNGs come a second time with their checksums put right: without that, nothing but checksums would be found wrong.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/base/mix.h"
#include "skytrain/image/mutation_test_data.h"
#include "skytrain/image/orientation.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/resize.h"
#include "skytrain/image/strict_libjpeg_test_data.h"

namespace {

using namespace skytrain;  // NOLINT(google-build-using-namespace)

// Larger ones would be looked at so slowly that nothing was found.
constexpr int64_t kMostPixels = int64_t{1} << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

// The result of read(), or nothing where the file is refused as it should be.
template <typename Read>
auto result_of(const Read& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kData);
    require(error.where() == "file" && !error.problem().empty() && error.problem().find('\n') == std::string::npos);
  }
  return std::nullopt;
}

image::Region draw_region(const image::Size& size, uint64_t bits) {
  const auto part = [&](int64_t whole, int shift) {
    const int64_t first = static_cast<int64_t>((bits >> shift) % static_cast<uint64_t>(whole));
    const int64_t count = 1 + static_cast<int64_t>((bits >> (shift + 16)) % static_cast<uint64_t>(whole - first));
    return std::pair(first, count);
  };
  const auto [left, width] = part(size.width, 0);
  const auto [top, height] = part(size.height, 32);
  return {left, top, width, height};
}

void check_region(std::span<const uint8_t> file, const std::optional<image::Picture>& whole,
                  const image::Region& region) {
  image::Scratch scratch;  // of its own: the whole picture lies in the other
  const auto part = result_of([&] { return image::decode_region(file, "file", region, scratch); });
  if (!whole) return;  // damage below a region goes unnoticed
  require(part && part->width == region.width && part->height == region.height);
  for (int64_t y = 0; y < region.height; ++y) {
    const uint8_t* const line = whole->pixels + 3 * ((region.top + y) * whole->width + region.left);
    const size_t bytes = static_cast<size_t>(3 * region.width);
    require(std::memcmp(line, part->pixels + static_cast<size_t>(y) * bytes, bytes) == 0);
  }
}

// As it stands upright, whatever its Exif tags say.
void check_resized(std::span<const uint8_t> file, const image::Size& size, uint64_t bits, bool whole) {
  const image::Orientation orientation = image::exif_orientation(file);
  const image::Region region = draw_region(image::upright_size(size, orientation), bits);
  const bool flip = bits >> 63 != 0;
  image::Scratch scratch;
  uint8_t sample[3 * 8 * 8];
  const image::OutputSpec output{.layout = image::Layout::kHwc, .type = image::ElementType::kUint8, .flip = flip};
  const auto done = result_of([&] {
    image::decode_resized(file, "file", region, {.size = {8, 8}}, output, sample, scratch, orientation);
    return true;
  });
  require(done || !whole);
}

void look_at(std::span<const uint8_t> file) {
  const auto size = result_of([&] { return image::picture_size(file, "file"); });
  if (size && size->width * size->height > kMostPixels) return;
  image::Scratch scratch;
  const auto whole = result_of([&] { return image::decode_picture(file, "file", scratch); });
  if (!size) {
    require(!whole);
    return;
  }
  uint64_t bits = file.size();
  for (const uint8_t byte : file.last(std::min<size_t>(file.size(), 64))) bits = mix64(bits + byte);
  const image::Region region = draw_region(*size, bits);
  check_region(file, whole, region);
  check_region(file, whole, {region.left, 0, region.width, size->height});
  check_resized(file, *size, bits, whole.has_value());
  if (!whole) return;
  require(whole->width == size->width && whole->height == size->height);
  if (!image::is_jpeg(file)) return;
  const auto expected = image::strict_libjpeg_pixels(file, size->width, size->height);
  require(!expected || std::memcmp(expected->data(), whole->pixels, expected->size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file(data, size);
  look_at(file);
  if (image::is_png(file)) {
    std::string mended(reinterpret_cast<const char*>(data), size);
    if (image::mend_checksums(mended)) look_at({reinterpret_cast<const uint8_t*>(mended.data()), mended.size()});
  }
  return 0;
}
