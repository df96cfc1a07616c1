#include "skytrain/image/scratch.h"

#include "skytrain/base/allocate.h"
#include "skytrain/image/decoders.h"

namespace skytrain::image {
namespace {

constexpr size_t kKeep = size_t{64} << 20;

}  // namespace

uint8_t* ByteBuffer::room(size_t size, const std::string& where) {
  if (size > capacity_) {
    give_back(0);
    bytes_ = allocate_bytes(size, where);
    capacity_ = size;
  }
  return bytes_.get();
}

void ByteBuffer::give_back(size_t keep) {
  if (capacity_ <= keep) return;
  bytes_.reset();
  capacity_ = 0;
}

Scratch::Scratch() = default;
Scratch::~Scratch() = default;

Decoders& Scratch::decoders() {
  if (!decoders_) decoders_ = std::make_unique<Decoders>();
  return *decoders_;
}

void Scratch::give_back_excess() {
  for (ByteBuffer* buffer : {&encoded, &decoded, &line, &lines, &upright, &narrowed, &fused.ring})
    buffer->give_back(kKeep);
}

}  // namespace skytrain::image
