// skytrain/image/strict_libjpeg_test_data.h
//
// For tests and fuzzing: what libjpeg alone makes of a JPEG, its own entropy decoder included.

#pragma once
#include <csetjmp>
#include <optional>
#include <span>
#include <string>

#include "skytrain/image/picture_test_data.h"

namespace skytrain::image {

struct StrictErrors {
  jpeg_error_mgr manager;
  std::jmp_buf failed;
};

// The picture's RGB into `pixels`, which has room for `room` bytes. False: it is refused, warned of, no picture of RGB,
// or larger. In C's manner: libjpeg leaves by longjmp.
inline bool read_strictly(std::span<const uint8_t> file, uint8_t* pixels, size_t room) {
  jpeg_decompress_struct info{};
  StrictErrors errors{};
  const auto leave = [](j_common_ptr failed) { std::longjmp(reinterpret_cast<StrictErrors*>(failed->err)->failed, 1); };
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = [](j_common_ptr warned, int level) {
    if (level < 0) std::longjmp(reinterpret_cast<StrictErrors*>(warned->err)->failed, 1);
  };
  if (setjmp(errors.failed) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  const size_t stride = size_t{3} * info.image_width;
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK || stride * info.image_height != room) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW line = pixels + info.output_scanline * stride;
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

// RGB of a JPEG of width x height pixels; nullopt: libjpeg refuses it or warns of anything.
inline std::optional<std::string> strict_libjpeg_pixels(std::span<const uint8_t> file, int64_t width, int64_t height) {
  std::string pixels(static_cast<size_t>(3 * width * height), '\0');
  if (!read_strictly(file, reinterpret_cast<uint8_t*>(pixels.data()), pixels.size())) return std::nullopt;
  return pixels;
}

}  // namespace skytrain::image
