#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {
namespace {

// No deflate stream unpacks to more than this many times its size (258 bytes for 2 bits).
constexpr uint64_t kDeflateMaxRatio = 1032;

// libpng leaves by longjmp, which skips destructors: the functions that call setjmp hold nothing that has one.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const uint8_t> rest;  // of the file
  std::jmp_buf failed{};
  bool truncated = false;
  char message[200] = {};

  explicit Decoder(std::span<const uint8_t> encoded) : rest(encoded) {}
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<Decoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message, sizeof decoder->message, "%s", message);
  std::longjmp(decoder->failed, 1);
}

void pass_over_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* decoder = static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > decoder->rest.size()) {
    decoder->truncated = true;
    png_error(png, "the file ends");
  }
  std::copy_n(decoder->rest.data(), count, out);
  decoder->rest = decoder->rest.subspan(count);
}

// False: failed, see message.
bool read_header(Decoder& decoder) {
  if (setjmp(decoder.failed) != 0) return false;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, fail, pass_over_warning);
  if (decoder.png == nullptr) return false;
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) return false;
  png_set_user_limits(decoder.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours come later, with a better message
  png_set_read_fn(decoder.png, &decoder, read_bytes);
  // Texts, profiles and the like, which may be compressed bombs, are passed over; transparency is read, to be dropped.
  png_set_keep_unknown_chunks(decoder.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(decoder.png, decoder.info);
  return true;
}

// Asks libpng for RGB of 8 bits. Returns how often each line is read (interlacing), 0 when it failed.
int start(Decoder& decoder) {
  if (setjmp(decoder.failed) != 0) return 0;
  png_structp png = decoder.png;
  const int type = png_get_color_type(png, decoder.info), depth = png_get_bit_depth(png, decoder.info);
  if (depth == 16) png_set_strip_16(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) png_set_gray_to_rgb(png);
  // A palette with transparency has four channels from here on.
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, decoder.info);
  return passes;
}

bool read_lines(Decoder& decoder, int passes, int64_t stride, int64_t height, uint8_t* out) {
  if (setjmp(decoder.failed) != 0) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < height; ++y) png_read_row(decoder.png, out + y * stride, nullptr);
  }
  png_read_end(decoder.png, nullptr);  // checks what follows the last line: checksums, and that the end is there
  return true;
}

[[noreturn]] void refuse(const Decoder& decoder, const std::string& path) {
  if (decoder.png == nullptr || decoder.info == nullptr) throw std::bad_alloc();
  throw Error(ErrorKind::kData, path,
              decoder.truncated ? "is a truncated PNG picture: a part of it is missing"
                                : str("is a damaged PNG picture: ", decoder.message),
              "copy or download it again, or remove it");
}

}  // namespace

Picture decode_png(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch) {
  Decoder decoder(encoded);
  if (!read_header(decoder)) refuse(decoder, path);
  const int64_t width = png_get_image_width(decoder.png, decoder.info);
  const int64_t height = png_get_image_height(decoder.png, decoder.info);
  check_picture_size(width, height, path);
  const uint64_t unpacked = png_get_rowbytes(decoder.png, decoder.info) * static_cast<uint64_t>(height);
  if (unpacked / kDeflateMaxRatio > encoded.size()) {
    throw Error(ErrorKind::kData, path,
                str("is a damaged PNG picture: it announces ", width, " x ", height, " pixels, which a file of ",
                    encoded.size(), " bytes cannot hold"),
                "copy or download it again, or remove it");
  }
  const int passes = start(decoder);
  if (passes == 0) refuse(decoder, path);
  const int64_t stride = 3 * width;
  if (png_get_rowbytes(decoder.png, decoder.info) != static_cast<size_t>(stride)) {
    throw Error(ErrorKind::kInternal, path, "libpng gives lines of another length than asked for");
  }
  uint8_t* out = scratch.decoded.room(static_cast<size_t>(stride * height), path);
  if (!read_lines(decoder, passes, stride, height, out)) refuse(decoder, path);
  return {.pixels = out, .width = width, .height = height};
}

}  // namespace skytrain::image
