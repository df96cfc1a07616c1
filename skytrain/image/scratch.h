// skytrain/image/scratch.h
//
// Memory that a reader of samples keeps between calls, so that decoding allocates nothing once it has grown to the
// largest picture. One a thread: not thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/image/filter.h"

namespace skytrain::image {

// Bytes that are not initialised: what a file's header claims costs address space, and memory only once it is written.
class ByteBuffer {
 public:
  // Room for `size` bytes; what was in it is lost when it grows. Throws Error(kEnvironment, where, "needs … of
  // memory").
  uint8_t* room(size_t size, const std::string& where);
  uint8_t* data() { return bytes_.get(); }
  const uint8_t* data() const { return bytes_.get(); }
  size_t capacity() const { return capacity_; }
  // Frees the memory if it is more than `keep`.
  void give_back(size_t keep);

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
};

// Where one line of output pixels comes from, for each of its pixels (see resample.h).
struct Taps {
  std::vector<uint32_t> first;   // the first input pixel
  std::vector<uint32_t> count;   // how many input pixels
  std::vector<int32_t> weights;  // `stride` for each output pixel, of which `count` are used
  size_t stride = 0;
};

// Of decode_resized().
struct FusedScratch {
  Taps16 columns, rows;
  ByteBuffer ring;  // scaled lines
  std::vector<const uint8_t*> sources;
};

struct Decoders;

struct Scratch {
  std::string path;
  ByteBuffer encoded;   // a file as it is on the disk
  ByteBuffer decoded;   // its picture
  ByteBuffer line;      // one line of it in the file's own colours
  ByteBuffer lines;     // a few lines of a region
  ByteBuffer upright;   // the picture as it is looked at, where it is stored sideways
  ByteBuffer narrowed;  // the picture with its final width
  ByteBuffer sample;    // what Dataset::pixels() points to
  Taps columns, rows;
  FusedScratch fused;
  std::vector<int32_t> sums;  // of one line of output, before rounding

  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Decoders& decoders();  // made when first asked for
  // One picture may be a thousand times the usual one: what it needed is not kept for ever.
  void give_back_excess();

 private:
  std::unique_ptr<Decoders> decoders_;
};

}  // namespace skytrain::image
