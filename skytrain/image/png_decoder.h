// skytrain/image/png_decoder.h
//
// A PNG file to lines of RGB, by libpng, whose memory is kept from one picture to the next. Not thread-safe.

#pragma once
#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <span>
#include <string>

#include "skytrain/image/arena.h"
#include "skytrain/image/region.h"

namespace skytrain::image {

class PngDecoder {
 public:
  PngDecoder() = default;
  ~PngDecoder() { close(0); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // Reads the header. encoded and path stay where they are while this picture is read. This and what follows throw
  // Error(kData, path, …) when the file is truncated or damaged, or Error(kEnvironment) for lack of memory.
  void open(std::span<const uint8_t> encoded, const std::string& path);
  const Size& size() const { return size_; }
  // Whether the lines come in several passes over the picture: then only read_all() gives them.
  bool is_interlaced() const { return passes_ > 1; }
  // Whether the file's last bytes are an end chunk: without it the file may be cut anywhere.
  bool has_end() const;

  // The next line: 3*width bytes.
  void read_line(uint8_t* line);
  // All lines, one after the other; checks what follows them too: checksums, and that the end is there.
  void read_all(uint8_t* out);

  // Forgets the picture and the memory that it needed beyond `keep` bytes.
  void close(size_t keep);

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message);
  static void read_bytes(png_structp png, png_bytep out, size_t count);
  static png_voidp allocate(png_structp png, png_alloc_size_t size);

  // False: failed, see message_.
  bool read_header();
  bool start();
  bool read_lines(uint8_t* out, int64_t count, int passes, bool end);
  [[noreturn]] void refuse();

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const uint8_t> encoded_, rest_;  // the file, and what has not been read of it
  const std::string* path_ = nullptr;
  std::jmp_buf failed_{};
  bool truncated_ = false, out_of_memory_ = false;
  char message_[200] = {};
  Arena arena_;
  Size size_;
  int passes_ = 0;
};

}  // namespace skytrain::image
