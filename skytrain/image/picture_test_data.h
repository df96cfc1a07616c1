// skytrain/image/picture_test_data.h
//
// For tests: makes the bytes of PNG and JPEG files. Mistakes end the program: libpng and libjpeg see to that.

#pragma once
// jpeglib.h needs <cstdio> before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace skytrain::image {

// Bytes 0, step, 2 step, …
inline std::string ramp(size_t count, int step = 7) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(static_cast<int>(i) * step);
  return bytes;
}

// One colour after the other, 3 bytes each, in a pattern that JPEG keeps well: blocks of 8 x 8 pixels.
inline std::string blocks(int64_t width, int64_t height, int channels = 3) {
  std::string bytes;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) bytes += static_cast<char>(40 + 50 * ((x / 8 + 2 * (y / 8) + c) % 5));
    }
  }
  return bytes;
}

// Waves with noise upon them, other ones in each channel.
inline std::string noise(int64_t width, int64_t height, int channels = 3, unsigned seed = 1) {
  std::minstd_rand random(seed);
  std::string bytes;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int64_t wave = (x * (3 + c) + y * (5 - c)) % 160;
        bytes += static_cast<char>(static_cast<int64_t>(random() % 96) + (wave < 80 ? wave : 160 - wave));
      }
    }
  }
  return bytes;
}

struct PngOptions {
  int type = PNG_COLOR_TYPE_RGB;
  int depth = 8;
  bool interlaced = false;
  std::vector<png_color> palette;
  std::vector<png_byte> transparency;  // of palette entries
  bool transparent_colour = false;     // tRNS of greyscale and RGB: colour 0
};

// lines: as libpng takes them (packed when depth < 8, big-endian when it is 16).
inline std::string encode_png(int64_t width, int64_t height, const std::string& lines, const PngOptions& options = {}) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_check_for_invalid_index(png, 0);  // a test may want one
  std::string out;
  png_set_write_fn(
      png, &out,
      [](png_structp writer, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(writer))->append(reinterpret_cast<char*>(bytes), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), options.depth,
               options.type, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  if (!options.palette.empty()) {
    png_set_PLTE(png, info, options.palette.data(), static_cast<int>(options.palette.size()));
  }
  if (!options.transparency.empty()) {
    png_set_tRNS(png, info, options.transparency.data(), static_cast<int>(options.transparency.size()), nullptr);
  }
  if (options.transparent_colour) {
    const png_color_16 black{};
    png_set_tRNS(png, info, nullptr, 0, &black);
  }
  png_write_info(png, info);
  const size_t stride = png_get_rowbytes(png, info);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) {
    const char* line = lines.data() + static_cast<size_t>(y) * stride;
    rows.push_back(reinterpret_cast<png_bytep>(const_cast<char*>(line)));
  }
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

struct JpegOptions {
  J_COLOR_SPACE from = JCS_RGB;    // of the lines
  J_COLOR_SPACE to = JCS_UNKNOWN;  // of the file; unknown: what is usual
  int quality = 95;
  bool progressive = false;
  bool arithmetic = false;
  int restart_interval = 0;  // MCUs
  bool optimized = false;    // Huffman tables of its own
  int across = 1, down = 1;  // pixels a colour sample: 2 and 2 is 4:2:0
  bool interleaved = true;   // false: a scan for each component
};

inline std::string encode_jpeg(int64_t width, int64_t height, const std::string& lines,
                               const JpegOptions& options = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.in_color_space = options.from;
  info.input_components = options.from == JCS_GRAYSCALE ? 1 : options.from == JCS_CMYK ? 4 : 3;
  jpeg_set_defaults(&info);
  if (options.to != JCS_UNKNOWN) jpeg_set_colorspace(&info, options.to);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  if (options.arithmetic) info.arith_code = TRUE;
  info.optimize_coding = options.optimized ? TRUE : FALSE;
  info.restart_interval = static_cast<unsigned>(options.restart_interval);
  for (int c = 0; c < info.num_components; ++c) {
    const bool full = c == 0 || c == 3;
    info.comp_info[c].h_samp_factor = full ? options.across : 1;
    info.comp_info[c].v_samp_factor = full ? options.down : 1;
  }
  jpeg_scan_info scans[4] = {};
  if (!options.interleaved) {
    for (int c = 0; c < info.num_components; ++c) scans[c] = {1, {c}, 0, 63, 0, 0};
    info.scan_info = scans;
    info.num_scans = info.num_components;
  }
  jpeg_start_compress(&info, TRUE);
  const size_t stride = static_cast<size_t>(width * info.input_components);
  while (info.next_scanline < info.image_height) {
    auto* line = reinterpret_cast<JSAMPROW>(const_cast<char*>(lines.data() + info.next_scanline * stride));
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return out;
}

// RGB by libjpeg alone.
inline std::string libjpeg_pixels(const std::string& file) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const size_t stride = size_t{3} * info.output_width;
  std::string pixels(stride * info.output_height, '\0');
  while (info.output_scanline < info.output_height) {
    auto* line = reinterpret_cast<JSAMPROW>(pixels.data() + info.output_scanline * stride);
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_destroy_decompress(&info);
  return pixels;
}

}  // namespace skytrain::image
