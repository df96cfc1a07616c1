#include "skytrain/base/checksum.h"

#include <xxhash.h>

#include <new>

#include "skytrain/base/hash.h"

namespace skytrain {
namespace {

std::string digits(uint64_t value, int count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(static_cast<size_t>(count), '0');
  for (int i = count; i-- > 0; value >>= 4) text[static_cast<size_t>(i)] = kDigits[value & 15];
  return text;
}

class Xxh32 final : public Checksum {
 public:
  Xxh32() : state_(XXH32_createState(), XXH32_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH32_reset(state_.get(), 0);
  }
  void update(std::span<const std::byte> bytes) override { XXH32_update(state_.get(), bytes.data(), bytes.size()); }
  std::string hex() const override { return digits(XXH32_digest(state_.get()), 8); }

 private:
  std::unique_ptr<XXH32_state_t, decltype(&XXH32_freeState)> state_;
};

class Xxh64 final : public Checksum {
 public:
  Xxh64() : state_(XXH64_createState(), XXH64_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH64_reset(state_.get(), 0);
  }
  void update(std::span<const std::byte> bytes) override { XXH64_update(state_.get(), bytes.data(), bytes.size()); }
  std::string hex() const override { return digits(XXH64_digest(state_.get()), 16); }

 private:
  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
};

class Xxh3 final : public Checksum {
 public:
  Xxh3() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void update(std::span<const std::byte> bytes) override {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::string hex() const override { return digits(XXH3_64bits_digest(state_.get()), 16); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

class Xxh3Wide final : public Checksum {
 public:
  void update(std::span<const std::byte> bytes) override { hash_.update(bytes); }
  std::string hex() const override { return hash_.hex(); }

 private:
  Xxh128 hash_;
};

}  // namespace

std::unique_ptr<Checksum> Checksum::make(std::string_view kind) {
  if (kind == "xxh32") return std::make_unique<Xxh32>();
  if (kind == "xxh64") return std::make_unique<Xxh64>();
  if (kind == "xxh3_64") return std::make_unique<Xxh3>();
  if (kind == "xxh3_128" || kind == "xxh128") return std::make_unique<Xxh3Wide>();
  return nullptr;
}

}  // namespace skytrain
