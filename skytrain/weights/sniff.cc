#include "skytrain/weights/sniff.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "skytrain/weights/little_endian.h"

namespace skytrain::weights {
namespace {

constexpr uint64_t kSafetensorsLengthBytes = 8, kSafetensorsMaxHeader = 100'000'000;
constexpr size_t kTarMagicAt = 257;

struct Signature {
  std::string_view bytes, words;
};

constexpr Signature kBinary[] = {
    {"\x1f\x8b", "is gzip"},
    {"\x89HDF\r\n\x1a\n", "is an HDF5 file (Keras?)"},
    {"GGUF", "is a GGUF file"},
    {"\x93NUMPY", "is a NumPy file"},
    {"BZh", "is a bzip2 file"},
    {"\x28\xb5\x2f\xfd", "is a Zstandard file"},
    {"\xfd"
     "7zXZ",
     "is an xz file"},
    {"version https://git-lfs", "is a Git LFS pointer, not the file itself"},
};

// After white space, compared without case.
constexpr Signature kText[] = {
    {"<!doctype html", "looks like HTML"}, {"<html", "looks like HTML"}, {"<?xml", "looks like XML"},
    {"<", "looks like HTML or XML"},       {"{", "looks like JSON"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_tar(std::string_view text) { return text.size() >= kTarMagicAt + 5 && text.substr(kTarMagicAt, 5) == "ustar"; }

}  // namespace

FileKind sniff(std::span<const std::byte> file) {
  const std::string_view text = as_text(file);
  // The length of a safetensors header may begin with any bytes, also those of another format.
  if (text.size() > kSafetensorsLengthBytes && text[kSafetensorsLengthBytes] == '{') {
    const uint64_t length = load_le<uint64_t>(file.data());
    if (length <= kSafetensorsMaxHeader && length <= text.size() - kSafetensorsLengthBytes) {
      return FileKind::kSafetensors;
    }
  }
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return FileKind::kZip;
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return FileKind::kPickle;
  if (is_tar(text)) return FileKind::kTar;
  // A safetensors header whose length is wrong: its reader says so best.
  if (text.size() > kSafetensorsLengthBytes && text.substr(kSafetensorsLengthBytes).starts_with("{\"")) {
    return FileKind::kSafetensors;
  }
  return FileKind::kOther;
}

std::string describe_other(std::span<const std::byte> file) {
  const std::string_view text = as_text(file);
  if (text.empty()) return "is empty";
  if (is_tar(text)) {
    // The first member of a tar is at the beginning, its name first; the old form has four of these names.
    const std::string_view name = text.substr(0, std::min(text.find('\0'), size_t{100}));
    for (const std::string_view old : {"sys_info", "pickle", "storages", "tensors"}) {
      if (name == old || name.ends_with(std::string("/") + std::string(old))) {
        return "is a PyTorch file in the tar form of its first versions, which is not read";
      }
    }
    return "is a tar archive";
  }
  for (const Signature& signature : kBinary) {
    if (text.starts_with(signature.bytes)) return std::string(signature.words);
  }
  std::string_view body = text;
  if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
  body.remove_prefix(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
  for (const Signature& signature : kText) {
    const std::string_view start = body.substr(0, signature.bytes.size());
    if (std::equal(start.begin(), start.end(), signature.bytes.begin(), signature.bytes.end(),
                   [](char a, char b) { return lower(a) == b; })) {
      return std::string(signature.words);
    }
  }
  return "is in a format that is not known";
}

}  // namespace skytrain::weights
