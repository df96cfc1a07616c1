// jpeglib.h needs <cstdio> before it, and jerror.h needs jpeglib.h.
// clang-format off
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {
namespace {

// Honest encoders write about ten; each costs as much time as the whole picture.
constexpr int kMaxScans = 500;

// libjpeg leaves by longjmp, which skips destructors: the functions that call setjmp hold nothing that has one.
struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf failed{};
  int code = 0;  // of the message that ended it
  char message[JMSG_LENGTH_MAX] = {};

  Decoder();
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* decoder = static_cast<Decoder*>(info->client_data);
  decoder->code = info->err->msg_code;
  info->err->format_message(info, decoder->message);
  std::longjmp(decoder->failed, 1);
}

// Warnings after which libjpeg goes on with made-up (grey) blocks. The others are about things that no one sees, such
// as stray bytes before the end marker.
bool is_damage(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

void take_message(j_common_ptr info, int level) {
  if (level < 0 && is_damage(info->err->msg_code)) fail(info);
}

void watch_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* decoder = static_cast<Decoder*>(info->client_data);
  std::snprintf(decoder->message, sizeof decoder->message, "it has more than %d scans", kMaxScans);
  std::longjmp(decoder->failed, 1);
}

Decoder::Decoder() {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = fail;
  errors.emit_message = take_message;
  errors.output_message = [](j_common_ptr) {};
  progress.progress_monitor = watch_scans;
  info.client_data = this;
}

// False: failed, see code and message.
bool read_header(Decoder& decoder, std::span<const uint8_t> encoded) {
  if (setjmp(decoder.failed) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, encoded.data(), encoded.size());
  jpeg_read_header(&decoder.info, TRUE);
  const J_COLOR_SPACE space = decoder.info.jpeg_color_space;
  decoder.info.out_color_space = space == JCS_CMYK || space == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  return true;
}

bool start(Decoder& decoder) {
  if (setjmp(decoder.failed) != 0) return false;
  jpeg_start_decompress(&decoder.info);
  return true;
}

bool read_line(Decoder& decoder, uint8_t* line) {
  if (setjmp(decoder.failed) != 0) return false;
  jpeg_read_scanlines(&decoder.info, &line, 1);
  return true;
}

// a * b / 255, rounded.
uint8_t multiply(uint8_t a, uint8_t b) {
  const uint32_t product = uint32_t{a} * b + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

// Inverted CMYK: 255 is no ink.
void cmyk_to_rgb(const uint8_t* cmyk, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) rgb[c] = multiply(cmyk[c], cmyk[3]);
  }
}

[[noreturn]] void refuse(const Decoder& decoder, const std::string& path) {
  switch (decoder.code) {
    case JERR_OUT_OF_MEMORY:
      throw Error(ErrorKind::kEnvironment, path, "there is not enough memory to decode it",
                  "use a machine with more memory, or scale the picture down");
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
      throw Error(ErrorKind::kData, path, "is a truncated JPEG picture: a part of it is missing",
                  "copy or download it again, or remove it");
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
      throw Error(ErrorKind::kData, path, str("is a JPEG picture of a kind that is not read: ", decoder.message),
                  "convert it to a JPEG or PNG of 8 bits a channel, or remove it");
    default: {
      std::string_view what = decoder.message;
      constexpr std::string_view kPrefix = "Corrupt JPEG data: ";
      if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
      throw Error(ErrorKind::kData, path, str("is a damaged JPEG picture: ", what),
                  "copy or download it again, or remove it");
    }
  }
}

}  // namespace

Picture decode_jpeg(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch) {
  Decoder decoder;
  jpeg_decompress_struct& info = decoder.info;
  if (!read_header(decoder, encoded)) refuse(decoder, path);
  const int64_t width = info.image_width, height = info.image_height;
  check_picture_size(width, height, path);
  if (!start(decoder)) refuse(decoder, path);
  uint8_t* out = scratch.decoded.room(static_cast<size_t>(3 * width * height), path);
  const bool cmyk = info.out_color_space == JCS_CMYK;
  uint8_t* const line = cmyk ? scratch.line.room(static_cast<size_t>(4 * width), path) : nullptr;
  for (int64_t y = 0; y < height; ++y, out += 3 * width) {
    if (!read_line(decoder, cmyk ? line : out)) refuse(decoder, path);
    if (cmyk) cmyk_to_rgb(line, width, out);
  }
  return {.pixels = scratch.decoded.data(), .width = width, .height = height};
}

}  // namespace skytrain::image
