#include "skytrain/image/picture.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"

namespace skytrain::image {
namespace {

constexpr uint8_t kJpegStart[] = {0xff, 0xd8, 0xff};
constexpr uint8_t kPngStart[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

template <size_t size>
bool begins(std::span<const uint8_t> head, const uint8_t (&start)[size]) {
  return head.size() >= size && std::equal(start, start + size, head.begin());
}

}  // namespace

bool is_jpeg(std::span<const uint8_t> head) { return begins(head, kJpegStart); }
bool is_png(std::span<const uint8_t> head) { return begins(head, kPngStart); }

void check_picture_size(int64_t width, int64_t height, const std::string& path) {
  if (width <= kMaxPictureSide && height <= kMaxPictureSide && width * height <= kMaxPicturePixels) return;
  throw Error(ErrorKind::kData, path,
              str("has ", width, " x ", height, " pixels, the limit is ", kMaxPictureSide, " a side and ",
                  kMaxPicturePixels / 1'000'000, " million in all"),
              "scale it down, or remove it");
}

Picture decode_picture(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch) {
  if (encoded.empty()) {
    throw Error(ErrorKind::kData, path, "is empty (0 bytes)", "copy or download it again, or remove it");
  }
  if (is_jpeg(encoded)) return decode_jpeg(encoded, path, scratch);
  if (is_png(encoded)) return decode_png(encoded, path, scratch);
  throw Error(
      ErrorKind::kData, path,
      str("is no JPEG or PNG picture: it ", describe_content(encoded.first(std::min<size_t>(encoded.size(), 512)))),
      "convert it to PNG or JPEG, copy it again, or remove it");
}

}  // namespace skytrain::image
