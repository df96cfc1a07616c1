#include "skytrain/data/idx_file.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"
#include "skytrain/data/gzip.h"
#include "skytrain/data/memory_dataset.h"

namespace skytrain::data {
namespace {

constexpr char kAgain[] = "download or copy the file again";

[[noreturn]] void refuse(const std::string& path, std::string what, std::string hint = kAgain) {
  throw Error(ErrorKind::kData, path, std::move(what), std::move(hint));
}

size_t header_size(int dimensions) { return 4 + 4 * static_cast<size_t>(dimensions); }

std::string hex_magic(std::span<const uint8_t> head) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "0x";
  for (int i = 0; i < 4; ++i) {
    text += kHex[head[i] >> 4];
    text += kHex[head[i] & 15];
  }
  return text;
}

const char* contents(int dimensions) {
  return dimensions == kIdxImageDimensions ? "images" : dimensions == kIdxLabelDimensions ? "labels" : "data";
}

bool has_idx_magic(std::span<const uint8_t> head) { return head.size() >= 4 && head[0] == 0 && head[1] == 0; }

// head: the first decompressed bytes, at least 4. compressed_name: the file's name promises gzip, but it is not.
void check_magic(const std::string& path, std::span<const uint8_t> head, int dimensions, bool compressed_name) {
  const std::string wanted = str("an IDX file of ", contents(dimensions), " (magic 0x0000080", dimensions, ")");
  if (!has_idx_magic(head)) {
    if (compressed_name) refuse(path, str("not gzip (", describe_content(head), ")"));
    refuse(path, str("not IDX (", describe_content(head), "), expected ", wanted));
  }
  if (head[2] != 0x08) {
    refuse(path, str("has magic ", hex_magic(head), ", which is not of unsigned bytes, expected ", wanted),
           "convert the file to unsigned bytes");
  }
  const int found = head[3];
  if (found == dimensions) return;
  if (found == kIdxImageDimensions || found == kIdxLabelDimensions) {
    refuse(path, str("holds ", contents(found), " (magic ", hex_magic(head), "), expected ", wanted),
           "the files of images and labels may have been swapped");
  }
  refuse(path, str("has magic ", hex_magic(head), " (", found, " dimensions), expected ", wanted));
}

std::string dimensions_text(const std::vector<uint64_t>& dimensions) {
  std::vector<std::string> parts;
  for (uint64_t d : dimensions) parts.push_back(std::to_string(d));
  return join(parts, " x ");
}

// The dimensions, and the size of the data they announce. Checks what can be checked without the file's size.
uint64_t parse_dimensions(const std::string& path, std::span<const uint8_t> head, int count,
                          std::vector<uint64_t>& dimensions) {
  static constexpr const char* kNames[] = {"samples", "rows", "columns"};
  uint64_t product = 1;
  bool overflow = false;
  for (int i = 0; i < count; ++i) {
    const uint8_t* p = head.data() + 4 + 4 * i;
    const uint64_t d = uint64_t{p[0]} << 24 | uint64_t{p[1]} << 16 | uint64_t{p[2]} << 8 | uint64_t{p[3]};
    if (d == 0) refuse(path, str("its header announces 0 ", kNames[i]));
    overflow |= __builtin_mul_overflow(product, d, &product);
    dimensions.push_back(d);
  }
  if (overflow || product > (uint64_t{1} << 62)) {
    refuse(path, str("its header announces ", dimensions_text(dimensions), " bytes, which no file can hold"));
  }
  return product;
}

std::vector<uint8_t> read_start(const FileSystem& fs, const std::string& path, uint64_t file_size, uint64_t size) {
  std::vector<uint8_t> start(static_cast<size_t>(std::min(file_size, size)));
  fs.read_range(path, 0, std::as_writable_bytes(std::span(start)));
  return start;
}

uint64_t file_size(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) refuse(path, "no such file", "");
  if (info->type == FileInfo::Type::kDirectory) refuse(path, "is a directory, expected a file", "");
  if (info->type == FileInfo::Type::kOther) refuse(path, "is not a regular file", "");
  if (info->size == 0) refuse(path, "is empty (0 bytes)");
  return info->size;
}

IdxFile read_plain(const FileSystem& fs, const std::string& path, uint64_t bytes, std::span<const uint8_t> head,
                   int dimensions) {
  IdxFile file;
  file.offset = header_size(dimensions);
  const uint64_t data = parse_dimensions(path, head, dimensions, file.dimensions);
  const uint64_t announced = file.offset + data;
  if (announced != bytes) {
    refuse(path, str("is ", bytes, " bytes, its header announces ", announced, " (", dimensions_text(file.dimensions),
                     "): ", bytes < announced ? "truncated" : "trailing garbage"));
  }
  file.size = static_cast<size_t>(data);
  file.block = allocate_bytes(static_cast<size_t>(bytes), path);
  fs.read_range(path, 0, std::as_writable_bytes(std::span(file.block.get(), static_cast<size_t>(bytes))));
  return file;
}

IdxFile read_compressed(const FileSystem& fs, const std::string& path, uint64_t bytes, int dimensions) {
  const size_t header = header_size(dimensions);
  // A beginning is enough, unless the gzip header holds a very long comment.
  std::vector<uint8_t> start, head;
  for (uint64_t chunk = 1 << 16;; chunk *= 16) {
    start = read_start(fs, path, bytes, chunk);
    head = gunzip_head(start, header);
    if (head.size() == header || start.size() == bytes || chunk >= (1 << 24)) break;
  }
  if (head.size() >= 4) check_magic(path, head, dimensions, /*compressed_name=*/false);
  if (head.size() < header) refuse(path, explain_bad_gzip(start, header));

  IdxFile file;
  file.offset = header;
  const uint64_t data = parse_dimensions(path, head, dimensions, file.dimensions);
  if (data / kDeflateMaxRatio > bytes) {
    refuse(path, str("its header announces ", dimensions_text(file.dimensions), " bytes, which a gzip file of ", bytes,
                     " bytes cannot hold"));
  }
  // The other way round: stored blocks and members cost a little, but never as much as the data.
  if (bytes / 2 > header + data + (1 << 20)) {
    refuse(path, str("its header announces ", dimensions_text(file.dimensions), " bytes, far less than a gzip file of ",
                     bytes, " bytes holds"));
  }
  file.size = static_cast<size_t>(data);
  const auto compressed = allocate_bytes(static_cast<size_t>(bytes), path);
  const std::span<uint8_t> input(compressed.get(), static_cast<size_t>(bytes));
  fs.read_range(path, 0, std::as_writable_bytes(input));
  file.block = allocate_bytes(header + file.size, path);
  gunzip_exactly(input, std::span(file.block.get(), header + file.size), path);
  if (!std::equal(head.begin(), head.end(), file.block.get())) refuse(path, "changed while it was being read");
  return file;
}

}  // namespace

IdxFile read_idx(const FileSystem& fs, const std::string& path, int dimensions) {
  const uint64_t bytes = file_size(fs, path);
  const std::vector<uint8_t> head = read_start(fs, path, bytes, 512);
  if (is_gzip(head)) return read_compressed(fs, path, bytes, dimensions);
  const bool compressed_name = path.ends_with(".gz");
  if (head.size() < 4) {
    refuse(path, str("is ", bytes, " bytes, too short for ", compressed_name ? "a gzip" : "an IDX", " file"));
  }
  check_magic(path, head, dimensions, compressed_name);
  if (head.size() < header_size(dimensions)) {
    refuse(path, str("is ", bytes, " bytes, too short for its IDX header of ", header_size(dimensions)));
  }
  return read_plain(fs, path, bytes, head, dimensions);
}

}  // namespace skytrain::data
