#include "skytrain/base/hash.h"

#include <xxhash.h>

#include <new>

namespace skytrain {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * sizeof canonical.digest);
  for (const unsigned char byte : canonical.digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace

std::string xxh128_hex(std::span<const std::byte> bytes) { return to_hex(XXH3_128bits(bytes.data(), bytes.size())); }

std::string xxh128_hex(std::string_view text) { return to_hex(XXH3_128bits(text.data(), text.size())); }

struct Xxh128::Impl {
  XXH3_state_t* state = XXH3_createState();
  ~Impl() { XXH3_freeState(state); }
};

Xxh128::Xxh128() : impl_(std::make_unique<Impl>()) {
  if (impl_->state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(impl_->state);
}

Xxh128::~Xxh128() = default;

void Xxh128::update(std::span<const std::byte> bytes) { XXH3_128bits_update(impl_->state, bytes.data(), bytes.size()); }

std::string Xxh128::hex() const { return to_hex(XXH3_128bits_digest(impl_->state)); }

}  // namespace skytrain
