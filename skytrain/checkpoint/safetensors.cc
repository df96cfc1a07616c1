#include "skytrain/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"

namespace skytrain::checkpoint {
namespace {

constexpr char kMetadata[] = "__metadata__";
constexpr uint64_t kLengthBytes = 8;          // the header's length comes first
constexpr uint64_t kMaxHeader = 100'000'000;  // as the reference implementation
constexpr uint64_t kAlignment = 64;           // of the data section: a cache line, and any vector register
constexpr size_t kChunk = size_t{4} << 20;    // of a write

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  size_t size;
};

constexpr DtypeRow kDtypes[] = {
    {Dtype::kF64, "F64", 8}, {Dtype::kF32, "F32", 4},   {Dtype::kF16, "F16", 2}, {Dtype::kBF16, "BF16", 2},
    {Dtype::kI64, "I64", 8}, {Dtype::kI32, "I32", 4},   {Dtype::kI16, "I16", 2}, {Dtype::kI8, "I8", 1},
    {Dtype::kU8, "U8", 1},   {Dtype::kBool, "BOOL", 1},
};

const DtypeRow& row_of(Dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return row;
  }
  throw Error(ErrorKind::kInternal, "", "unknown dtype");
}

// Size in bytes of an array of this shape; nothing when it exceeds 63 bits.
std::optional<uint64_t> array_bytes(const std::vector<int64_t>& shape, Dtype dtype) {
  uint64_t bytes = dtype_size(dtype);
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) return std::nullopt;
  }
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return bytes;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (int64_t extent : shape) parts.push_back(std::to_string(extent));
  return "[" + join(parts, ", ") + "]";
}

uint64_t read_length(const char* bytes) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  return length;
}

// What every refusal of a header needs to know.
class Refusal {
 public:
  explicit Refusal(const std::string& file) : file_(file) {}
  [[noreturn]] void operator()(std::string what) const { throw Error(ErrorKind::kData, file_, std::move(what)); }
  [[noreturn]] void tensor(const std::string& name, const std::string& what) const {
    (*this)(str("tensor \"", printable(name), "\" ", what));
  }

 private:
  const std::string& file_;
};

// Checks the eight first bytes against the file's size before anything is allocated for the header.
uint64_t checked_header_length(const char* bytes, uint64_t file_bytes, const Refusal& refuse) {
  const uint64_t length = read_length(bytes);
  if (length > file_bytes - kLengthBytes) {
    refuse(str("header length ", length, " exceeds the file, which is ", file_bytes, " bytes"));
  }
  if (length > kMaxHeader) refuse(str("header length ", length, " exceeds the format's limit of ", kMaxHeader));
  return length;
}

void check_has_length(uint64_t file_bytes, const Refusal& refuse) {
  if (file_bytes >= kLengthBytes) return;
  refuse(
      str("is ", file_bytes, " bytes, too short for a safetensors file, which begins with 8 bytes of header length"));
}

ArrayInfo parse_array(const std::string& name, const Json& entry, uint64_t data_begin, uint64_t data_bytes,
                      const Refusal& refuse) {
  if (!entry.is_object()) refuse.tensor(name, "is not described by a JSON object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) refuse.tensor(name, str("has no ", key));
  }
  ArrayInfo info;

  const Json& dtype = entry["dtype"];
  if (!dtype.is_string()) refuse.tensor(name, "has a dtype that is not a string");
  const auto& dtype_text = dtype.get_ref<const std::string&>();
  const auto row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                [&](const DtypeRow& candidate) { return candidate.name == dtype_text; });
  if (row == std::end(kDtypes)) {
    std::vector<std::string> known;
    for (const DtypeRow& candidate : kDtypes) known.emplace_back(candidate.name);
    refuse.tensor(name, str("has unknown dtype \"", printable(dtype_text), "\" (known: ", join(known, ", "), ")"));
  }
  info.dtype = row->dtype;

  const Json& shape = entry["shape"];
  if (!shape.is_array()) refuse.tensor(name, "has a shape that is not a list");
  for (const Json& extent : shape) {
    if (!extent.is_number_integer()) refuse.tensor(name, "has a shape with something that is no integer");
    if (!extent.is_number_unsigned()) {
      refuse.tensor(name, str("has a negative dimension in its shape (", extent.get<int64_t>(), ")"));
    }
    const uint64_t value = extent.get<uint64_t>();
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      refuse.tensor(name, str("has a dimension that is too large (", value, ")"));
    }
    info.shape.push_back(static_cast<int64_t>(value));
  }
  const std::optional<uint64_t> bytes = array_bytes(info.shape, info.dtype);
  if (!bytes) refuse.tensor(name, str("has shape ", shape_text(info.shape), ", whose size overflows"));

  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    refuse.tensor(name, "has data_offsets that are not two non-negative integers");
  }
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end) refuse.tensor(name, str("begins at ", begin, ", after its end at ", end));
  if (end > data_bytes) {
    refuse.tensor(name, str("ends at byte ", end, " of the data, past the end: the file holds ", data_bytes));
  }
  if (end - begin != *bytes) {
    refuse.tensor(name,
                  str("has ", end - begin, " bytes, but ", dtype_text, " ", shape_text(info.shape), " needs ", *bytes));
  }
  info.begin = data_begin + begin;
  info.end = data_begin + end;
  return info;
}

// The arrays must tile the data section: the format allows no byte that belongs to none or to two.
void check_tiling(const SafetensorsHeader& header, uint64_t data_begin, const Refusal& refuse) {
  std::vector<const std::pair<const std::string, ArrayInfo>*> sorted;
  for (const auto& entry : header.arrays) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t at = data_begin;
  const std::string* previous = nullptr;
  for (const auto* entry : sorted) {
    const ArrayInfo& info = entry->second;
    if (info.begin > at) refuse.tensor(entry->first, str("leaves a hole of ", info.begin - at, " bytes before it"));
    if (info.begin < at) {
      refuse.tensor(entry->first, str("overlaps tensor \"", printable(*previous), "\" by ", at - info.begin, " bytes"));
    }
    at = info.end;
    previous = &entry->first;
  }
  if (at != header.file_bytes) refuse(str("has ", header.file_bytes - at, " trailing bytes after its last tensor"));
}

std::string make_header(std::span<const NamedArray> arrays, const SafetensorsLayout& layout,
                        const std::map<std::string, std::string>& metadata, uint64_t alignment) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t at = 0;
  for (const size_t i : layout.order) {
    header[arrays[i].name] = {{"dtype", dtype_name(arrays[i].dtype)},
                              {"shape", arrays[i].shape},
                              {"data_offsets", {at, at + layout.sizes[i]}}};
    at += layout.sizes[i];
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const OrderedJson::exception& error) {
    throw Error(ErrorKind::kInternal, "", str("tensor names and metadata must be UTF-8: ", error.what()));
  }
  const uint64_t unpadded = kLengthBytes + text.size();
  text.append((unpadded + alignment - 1) / alignment * alignment - unpadded, ' ');
  if (text.size() > kMaxHeader) throw Error(ErrorKind::kInternal, "", "the safetensors header exceeds its limit");
  return text;
}

}  // namespace

size_t dtype_size(Dtype dtype) { return row_of(dtype).size; }
std::string_view dtype_name(Dtype dtype) { return row_of(dtype).name; }

SafetensorsLayout lay_out_safetensors(std::span<const NamedArray> arrays,
                                      const std::map<std::string, std::string>& metadata, uint64_t alignment) {
  SafetensorsLayout layout;
  std::map<std::string_view, int> names;
  for (size_t i = 0; i < arrays.size(); ++i) {
    layout.order.push_back(i);
    layout.sizes.push_back(array_bytes(arrays[i].shape, arrays[i].dtype).value());
    if (++names[arrays[i].name] > 1 || arrays[i].name == kMetadata) {
      throw Error(ErrorKind::kInternal, "", str("two tensors are named \"", printable(arrays[i].name), "\""));
    }
  }
  std::sort(layout.order.begin(), layout.order.end(), [&](size_t a, size_t b) {
    const size_t size_a = dtype_size(arrays[a].dtype), size_b = dtype_size(arrays[b].dtype);
    return size_a != size_b ? size_a > size_b : arrays[a].name < arrays[b].name;
  });
  const std::string text = make_header(arrays, layout, metadata, alignment);
  layout.head.assign(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) layout.head[i] = static_cast<char>(text.size() >> (8 * i));
  layout.head += text;
  layout.file_bytes = layout.head.size();
  layout.begins.resize(arrays.size());
  for (const size_t i : layout.order) {
    layout.begins[i] = layout.file_bytes;
    layout.file_bytes += layout.sizes[i];
  }
  return layout;
}

uint64_t write_safetensors(WritableFile& out, std::span<const NamedArray> arrays,
                           const std::map<std::string, std::string>& metadata) {
  for (const NamedArray& array : arrays) {
    if (array_bytes(array.shape, array.dtype) != array.bytes.size()) {
      throw Error(ErrorKind::kInternal, "",
                  str("tensor \"", printable(array.name), "\": ", array.bytes.size(), " bytes cannot be written as ",
                      dtype_name(array.dtype), " ", shape_text(array.shape)));
    }
  }
  const SafetensorsLayout layout = lay_out_safetensors(arrays, metadata, kAlignment);
  out.append(layout.head);
  for (const size_t i : layout.order) {
    const std::span<const std::byte> bytes = arrays[i].bytes;
    for (size_t at = 0; at < bytes.size(); at += kChunk) {
      out.append(bytes.subspan(at, std::min(kChunk, bytes.size() - at)));
    }
  }
  return layout.file_bytes;
}

SafetensorsHeader parse_safetensors_header(std::string_view head, uint64_t file_bytes, const std::string& file) {
  const Refusal refuse(file);
  check_has_length(file_bytes, refuse);
  if (head.size() < kLengthBytes) refuse("is shorter than it was a moment ago");
  const uint64_t length = checked_header_length(head.data(), file_bytes, refuse);
  if (length > head.size() - kLengthBytes) refuse("is shorter than it was a moment ago");
  const std::string_view text = head.substr(kLengthBytes, static_cast<size_t>(length));
  if (!text.starts_with('{')) refuse("has a header that is not JSON (it must begin with \"{\")");
  const Json json = parse_json(text, file);
  if (!json.is_object()) refuse("has a header that is not a JSON object");

  SafetensorsHeader header;
  header.file_bytes = file_bytes;
  const uint64_t data_begin = kLengthBytes + length;
  for (const auto& [name, entry] : json.items()) {
    if (name != kMetadata) {
      header.arrays[name] = parse_array(name, entry, data_begin, file_bytes - data_begin, refuse);
      continue;
    }
    if (!entry.is_object()) refuse("has a __metadata__ that is not a JSON object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse(str("has a __metadata__ entry \"", printable(key), "\" that is not a string"));
      header.metadata[key] = value.get<std::string>();
    }
  }
  check_tiling(header, data_begin, refuse);
  return header;
}

SafetensorsHeader read_safetensors_header(const FileSystem& fs, const std::string& file) {
  const Refusal refuse(file);
  const std::optional<FileInfo> info = fs.stat(file);
  if (!info) refuse("no such file");
  if (info->type != FileInfo::Type::kFile) refuse("is not a file");
  check_has_length(info->size, refuse);
  std::string head(kLengthBytes, '\0');
  fs.read_range(file, 0, std::as_writable_bytes(std::span(head)));
  const uint64_t length = checked_header_length(head.data(), info->size, refuse);
  head.resize(kLengthBytes + static_cast<size_t>(length));
  fs.read_range(file, 0, std::as_writable_bytes(std::span(head)));
  return parse_safetensors_header(head, info->size, file);
}

std::string read_safetensors_head(const ReadableFile& file, const std::string& path) {
  const Refusal refuse(path);
  check_has_length(file.size(), refuse);
  std::string head(kLengthBytes, '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  const uint64_t length = checked_header_length(head.data(), file.size(), refuse);
  head.resize(kLengthBytes + static_cast<size_t>(length));
  file.read(kLengthBytes, std::as_writable_bytes(std::span(head)).subspan(kLengthBytes));
  return head;
}

const ArrayInfo& array_of(const SafetensorsHeader& header, const std::string& name, const std::string& file) {
  const auto found = header.arrays.find(name);
  if (found != header.arrays.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, info] : header.arrays) names.push_back(known);
  throw Error(ErrorKind::kData, file, str("has no tensor \"", printable(name), "\"", did_you_mean(name, names)));
}

}  // namespace skytrain::checkpoint
