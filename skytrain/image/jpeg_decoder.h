// skytrain/image/jpeg_decoder.h
//
// libjpeg-turbo's decompressor, kept from one picture to the next: after the first few, decoding allocates nothing.
// Not thread-safe.

#pragma once
#include <csetjmp>
#include <cstdint>
#include <span>
#include <string>

#include "skytrain/image/arena.h"
#include "skytrain/image/jpeg_entropy.h"
#include "skytrain/image/jpeg_library.h"
#include "skytrain/image/region.h"

namespace skytrain::image {

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. encoded and path stay where they are while this picture is read. This and what follows throw
  // Error(kData, path, …) when the file is truncated, damaged or of a kind that is not read, or Error(kEnvironment) for
  // lack of memory.
  void open(std::span<const uint8_t> encoded, const std::string& path);
  Size size() const { return {int64_t{info_.image_width}, int64_t{info_.image_height}}; }
  // Whether an end marker follows the header: without one the file may be cut anywhere, also below a region.
  bool has_end() const;

  // After open(), one of these: the whole picture; or a region's lines and, of their pixels, at least those that it
  // needs to come out as from the whole picture. space: JCS_RGB or a 4-byte variant; of CMYK and YCCK files the lines
  // come as inverted CMYK, whatever it says.
  void start(J_COLOR_SPACE space);
  void start(J_COLOR_SPACE space, const Region& region);
  // After start(): whether every bit of every coefficient has come. libjpeg smooths the blocks of progressive pictures
  // of which some have not, each with its neighbours; within a region it takes other ones than in the whole picture.
  bool is_complete() const;
  bool is_cmyk() const { return info_.out_color_space == JCS_CMYK; }
  // Of a line as read: all its pixels, and those before the region's first.
  int64_t line_pixels() const { return info_.output_width; }
  int64_t pixels_before() const { return before_; }
  // How many lines come out at once.
  int lines_at_once() const { return info_.rec_outbuf_height; }

  // The next lines, from the top: at least one, at most `count`. Returns how many.
  int read(uint8_t** lines, int count);

  // Forgets the picture and the memory that it needed beyond `keep` bytes.
  void close(size_t keep);
  size_t memory() const { return arena_.capacity(); }

 private:
  friend Arena& find_arena(j_common_ptr info);
  friend JpegEntropy& find_entropy(j_decompress_ptr info);
  [[noreturn]] static void fail(j_common_ptr info);
  static void take_message(j_common_ptr info, int level);
  static void watch_scans(j_common_ptr info);

  // False: failed, see code_ and message_.
  bool create();
  bool read_header();
  bool start_decoding();
  bool start_region();
  bool read_lines(uint8_t** lines, int count, int& done);
  [[noreturn]] void refuse();

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf failed_{};
  int code_ = 0;  // of the message that ended it
  char message_[JMSG_LENGTH_MAX] = {};
  Arena arena_;
  JpegEntropy entropy_;
  bool created_ = false;
  std::span<const uint8_t> encoded_;
  const std::string* path_ = nullptr;
  Region columns_;  // what jpeg_crop_scanline is asked for; its width is 0 when all are read
  int64_t before_ = 0;
};

}  // namespace skytrain::image
