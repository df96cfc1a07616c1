// skytrain/weights/tensor_reader.h
//
// From a tensor of a pickle to an array: what its storage is, and its elements in row-major order.

#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "skytrain/checkpoint/safetensors.h"
#include "skytrain/weights/pickle_values.h"
#include "skytrain/weights/refusal.h"

namespace skytrain::weights {

// What the pickle says of a storage.
struct StorageClaim {
  std::string_view key;
  checkpoint::Dtype dtype = checkpoint::Dtype::kU8;
  uint64_t bytes = 0;            // of the whole storage
  uint64_t begin = 0, size = 0;  // bytes that count of it: all, or a view's
};
// REQUIRES: storage is a kStorage. Throws Error(kData) when its numbers don't fit each other.
StorageClaim storage_claim(const PickleValues& values, PickleRef storage, const Refusal& refuse);

// Finds a storage's bytes, exactly as many as claimed, or throws Error(kData).
using FindStorage = std::function<std::span<const std::byte>(const StorageClaim&)>;

class TensorReader {
 public:
  // copy_limit: bytes that all copies together may take. All must outlive this.
  TensorReader(const PickleValues& values, FindStorage find_storage, uint64_t copy_limit, const Refusal& refuse)
      : values_(values), find_storage_(std::move(find_storage)), copy_left_(copy_limit), refuse_(refuse) {}

  checkpoint::NamedArray read(std::string_view name, PickleRef tensor);
  // The copies that were made; the arrays' bytes are in them or in the file.
  std::vector<std::unique_ptr<std::byte[]>> take_copies() { return std::move(copies_); }

 private:
  struct Layout {
    std::vector<int64_t> shape, strides;  // strides in elements
    uint64_t elements = 1;
    bool contiguous = true;
  };
  Layout layout(std::string_view name, PickleRef size, PickleRef stride) const;
  std::span<const std::byte> storage_bytes(std::string_view name, const StorageClaim& claim);
  std::span<const std::byte> copy(std::string_view name, const Layout& layout, std::span<const std::byte> from,
                                  size_t element_bytes);

  struct Storage {
    checkpoint::Dtype dtype;
    std::span<const std::byte> bytes;
  };
  const PickleValues& values_;
  const FindStorage find_storage_;
  uint64_t copy_left_;
  const Refusal& refuse_;
  std::map<std::string_view, Storage> storages_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;
};

}  // namespace skytrain::weights
