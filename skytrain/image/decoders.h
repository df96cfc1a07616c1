// skytrain/image/decoders.h
//
// What a Scratch keeps of the libraries: their decompressors, and the readers of lines upon them. Not thread-safe.

#pragma once
#include "skytrain/image/jpeg_decoder.h"
#include "skytrain/image/lines.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/png_decoder.h"

namespace skytrain::image {

// A region of a JPEG, of which no more is decoded than it needs.
class JpegLines final : public Lines {
 public:
  explicit JpegLines(JpegDecoder& decoder) : decoder_(decoder) {}
  // decoder is open.
  void start(const Region& region, const std::string& path, ByteBuffer& memory);
  const uint8_t* next() override;

 private:
  JpegDecoder& decoder_;
  uint8_t* lines_[4] = {};               // as many as come out of the decoder at once
  int count_ = 0, next_ = 0, left_ = 0;  // lines that are decoded, the next of them, and those to come
};

// A region of a PNG that is not interlaced: the lines above it are decoded too.
class PngLines final : public Lines {
 public:
  explicit PngLines(PngDecoder& decoder) : decoder_(decoder) {}
  // decoder is open.
  void start(const Region& region, const std::string& path, ByteBuffer& memory, ByteBuffer& whole_line);
  const uint8_t* next() override;

 private:
  PngDecoder& decoder_;
  Region region_;
  uint8_t *line_ = nullptr, *whole_line_ = nullptr;
};

// A region of a picture that has been decoded.
class PictureLines final : public Lines {
 public:
  void start(const Picture& picture, const Region& region, const std::string& path, ByteBuffer& memory);
  const uint8_t* next() override;

 private:
  const uint8_t* from_ = nullptr;
  int64_t stride_ = 0, width_ = 0;
  uint8_t* line_ = nullptr;
};

struct Decoders {
  JpegDecoder jpeg;
  PngDecoder png;
  JpegLines jpeg_lines{jpeg};
  PngLines png_lines{png};
  PictureLines picture_lines;
};

}  // namespace skytrain::image
