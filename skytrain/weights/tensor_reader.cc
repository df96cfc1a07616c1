#include "skytrain/weights/tensor_reader.h"

#include <cstring>
#include <limits>

namespace skytrain::weights {
namespace {

constexpr uint32_t kMaxDimensions = 64;  // as PyTorch
constexpr uint64_t kMaxBytes = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

bool multiply(uint64_t& value, uint64_t by) { return !__builtin_mul_overflow(value, by, &value) && value <= kMaxBytes; }
bool add(uint64_t& value, uint64_t more) { return !__builtin_add_overflow(value, more, &value) && value <= kMaxBytes; }

std::string list_words(const std::vector<int64_t>& numbers) {
  std::vector<std::string> words;
  words.reserve(numbers.size());
  for (const int64_t number : numbers) words.push_back(std::to_string(number));
  return str("[", join(words, ", "), "]");
}

// Elements of `Bytes` bytes at strides (in elements) to row-major order. REQUIRES: at least one dimension, none empty.
template <size_t Bytes>
void gather(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, const std::byte* from,
            std::byte* to) {
  // Counts up like an odometer; the innermost dimension is a loop of its own.
  const size_t inner = shape.size() - 1;
  std::vector<int64_t> index(inner, 0);
  int64_t at = 0;
  for (;;) {
    for (int64_t i = 0; i < shape[inner]; ++i, to += Bytes) {
      std::memcpy(to, from + static_cast<size_t>(at + i * strides[inner]) * Bytes, Bytes);
    }
    size_t i = inner;
    while (i > 0) {
      --i;
      at += strides[i];
      if (++index[i] < shape[i]) break;
      at -= strides[i] * shape[i];
      index[i] = 0;
      if (i == 0) return;
    }
    if (inner == 0) return;
  }
}

}  // namespace

StorageClaim storage_claim(const PickleValues& values, PickleRef storage, const Refusal& refuse) {
  const PickleRef id = values.child(storage, 0);
  const PickleGlobal& type = values.global(values.child(id, 1));
  StorageClaim claim;
  claim.key = values.text(values.child(id, 2));
  const auto bad = [&](const auto&... words) {
    refuse(str("says that storage \"", printable(claim.key), "\" ", words...));
  };
  const int64_t elements = values.integer(values.child(id, 4));
  claim.dtype = type.dtype.value_or(checkpoint::Dtype::kU8);  // UntypedStorage counts bytes
  claim.bytes = checkpoint::dtype_size(claim.dtype);
  if (!multiply(claim.bytes, static_cast<uint64_t>(elements))) bad("has ", elements, " elements, which overflows");
  claim.size = claim.bytes;
  if (values.count(id) == 6 && !values.is(values.child(id, 5), PickleKind::kNone)) {
    const PickleRef view = values.child(id, 5);
    const int64_t begin = values.integer(values.child(view, 1)), size = values.integer(values.child(view, 2));
    if (begin < 0 || size < 0 || begin > elements || size > elements - begin) {
      bad("has ", elements, " elements, and a view of ", size, " from ", begin);
    }
    claim.begin = static_cast<uint64_t>(begin) * checkpoint::dtype_size(claim.dtype);
    claim.size = static_cast<uint64_t>(size) * checkpoint::dtype_size(claim.dtype);
  }
  return claim;
}

TensorReader::Layout TensorReader::layout(std::string_view name, PickleRef size, PickleRef stride) const {
  const uint32_t dimensions = values_.count(size);
  if (dimensions > kMaxDimensions) refuse_.tensor(name, str("has ", dimensions, " dimensions"));
  if (values_.count(stride) != dimensions) {
    refuse_.tensor(name, str("has ", dimensions, " dimensions and ", values_.count(stride), " strides"));
  }
  Layout layout;
  const auto numbers = [&](PickleRef from, std::vector<int64_t>& to, const char* what) {
    for (const PickleRef number : values_.children(from)) {
      if (!values_.is(number, PickleKind::kInt)) refuse_.tensor(name, str("has a ", what, " that is no number"));
      to.push_back(values_.integer(number));
      if (to.back() < 0) refuse_.tensor(name, str("has a negative ", what, ", ", list_words(to)));
    }
  };
  numbers(size, layout.shape, "shape");
  numbers(stride, layout.strides, "stride");
  // Overflow is judged without the zeros, so that it doesn't depend on their place.
  uint64_t product = 1;
  for (size_t i = dimensions; i-- > 0;) {
    const auto extent = static_cast<uint64_t>(layout.shape[i]);
    if (extent != 1 && static_cast<uint64_t>(layout.strides[i]) != product) layout.contiguous = false;
    if (!multiply(product, extent == 0 ? 1 : extent) || product > kMaxBytes / 8) {
      refuse_.tensor(name, str("has shape ", list_words(layout.shape), ", whose size overflows"));
    }
    if (extent == 0) layout.elements = 0;
  }
  if (layout.elements != 0) layout.elements = product;
  return layout;
}

std::span<const std::byte> TensorReader::storage_bytes(std::string_view name, const StorageClaim& claim) {
  auto it = storages_.find(claim.key);
  if (it == storages_.end()) {
    it = storages_.emplace(claim.key, Storage{claim.dtype, find_storage_(claim)}).first;
  }
  if (it->second.dtype != claim.dtype || it->second.bytes.size() != claim.bytes) {
    refuse_.tensor(name, str("uses storage \"", printable(claim.key), "\" as ", claim.bytes, " bytes of ",
                             checkpoint::dtype_name(claim.dtype), ", another tensor as ", it->second.bytes.size(),
                             " bytes of ", checkpoint::dtype_name(it->second.dtype)));
  }
  return it->second.bytes.subspan(claim.begin, claim.size);
}

checkpoint::NamedArray TensorReader::read(std::string_view name, PickleRef tensor) {
  if (values_.count(tensor) == 0) refuse_.tensor(name, "is a Parameter without data");
  const PickleRef parts = values_.child(tensor, 0);
  const StorageClaim claim = storage_claim(values_, values_.child(parts, 0), refuse_);
  const int64_t offset = values_.integer(values_.child(parts, 1));
  Layout layout = this->layout(name, values_.child(parts, 2), values_.child(parts, 3));
  const size_t element_bytes = checkpoint::dtype_size(claim.dtype);
  const std::span<const std::byte> storage = storage_bytes(name, claim);

  checkpoint::NamedArray array;
  array.name = name;
  array.dtype = claim.dtype;
  if (offset < 0) refuse_.tensor(name, str("begins at element ", offset, " of its storage"));
  if (layout.elements > 0) {
    // One past its last element.
    uint64_t end = static_cast<uint64_t>(offset) + 1;
    for (size_t i = 0; i < layout.shape.size(); ++i) {
      uint64_t reach = static_cast<uint64_t>(layout.shape[i]) - 1;
      if (!multiply(reach, static_cast<uint64_t>(layout.strides[i])) || !add(end, reach)) end = kMaxBytes;
    }
    if (end > storage.size() / element_bytes) {
      refuse_.tensor(
          name, str("with shape ", list_words(layout.shape), ", stride ", list_words(layout.strides), " and offset ",
                    offset, " reaches past its storage of ", storage.size() / element_bytes, " elements"));
    }
    const auto from = storage.subspan(static_cast<size_t>(offset) * element_bytes);
    array.bytes =
        layout.contiguous ? from.first(layout.elements * element_bytes) : copy(name, layout, from, element_bytes);
  }
  array.shape = std::move(layout.shape);
  return array;
}

std::span<const std::byte> TensorReader::copy(std::string_view name, const Layout& layout,
                                              std::span<const std::byte> from, size_t element_bytes) {
  const uint64_t bytes = layout.elements * element_bytes;
  if (bytes > copy_left_) {
    refuse_.tensor(name, str("with shape ", list_words(layout.shape), " and stride ", list_words(layout.strides),
                             " repeats its storage to ", bytes, " bytes, far beyond the file's size"));
  }
  copy_left_ -= bytes;
  copies_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  switch (element_bytes) {
    case 1:
      gather<1>(layout.shape, layout.strides, from.data(), copies_.back().get());
      break;
    case 2:
      gather<2>(layout.shape, layout.strides, from.data(), copies_.back().get());
      break;
    case 4:
      gather<4>(layout.shape, layout.strides, from.data(), copies_.back().get());
      break;
    default:
      gather<8>(layout.shape, layout.strides, from.data(), copies_.back().get());
      break;
  }
  return {copies_.back().get(), bytes};
}

}  // namespace skytrain::weights
