#include "skytrain/base/sniff.h"

#include <algorithm>
#include <string_view>

namespace skytrain {
namespace {

struct Signature {
  std::string_view bytes;
  std::string_view words;
};

constexpr Signature kBinary[] = {
    {"\x1f\x8b", "is gzip"},
    {"PK\x03\x04", "is a ZIP archive"},
    {"\xfd"
     "7zXZ",
     "is an xz file"},
    {"BZh", "is a bzip2 file"},
    {"\x28\xb5\x2f\xfd", "is a Zstandard file"},
    {"7z\xbc\xaf", "is a 7-Zip archive"},
    {"Rar!", "is a RAR archive"},
    {"\x89PNG", "is a PNG image"},
    {"\xff\xd8\xff", "is a JPEG image"},
    {"GIF87a", "is a GIF image"},
    {"GIF89a", "is a GIF image"},
    {{"II*\0", 4}, "is a TIFF image"},
    {{"MM\0*", 4}, "is a TIFF image"},
    {"8BPS", "is a Photoshop image"},
    {{"\0\0\0\x0cJXL ", 8}, "is a JPEG XL image"},
    {{"\0\0\0\x0cjP  ", 8}, "is a JPEG 2000 image"},
    {"\x93NUMPY", "is a NumPy file"},
    {"%PDF", "is a PDF document"},
    {"version https://git-lfs", "is a Git LFS pointer, not the file itself"},
};

// After leading white space, compared without case.
constexpr Signature kText[] = {
    {"<!doctype html", "looks like HTML"},
    {"<html", "looks like HTML"},
    {"<head", "looks like HTML"},
    {"<body", "looks like HTML"},
    {"<?xml", "looks like XML"},
    {"<", "looks like HTML or XML"},
    {"{", "looks like JSON"},
};

// Containers of several formats, told apart by what follows a length.
std::string_view describe_container(std::string_view text) {
  if (text.size() < 12) return {};
  const std::string_view kind = text.substr(8, 4);
  if (text.starts_with("RIFF") && kind == "WEBP") return "is a WebP image";
  if (text.substr(4, 4) == "ftyp") {
    if (kind == "avif" || kind == "avis") return "is an AVIF image";
    if (kind == "heic" || kind == "heix" || kind == "hevc" || kind == "mif1") return "is a HEIC image";
    return "is an MP4 or QuickTime file";
  }
  if (text.starts_with("BM") && text.substr(6, 4) == std::string_view("\0\0\0\0", 4)) return "is a BMP image";
  return {};
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string describe_content(std::span<const uint8_t> head) {
  if (head.empty()) return "is empty";
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const Signature& s : kBinary) {
    if (text.starts_with(s.bytes)) return std::string(s.words);
  }
  if (const std::string_view container = describe_container(text); !container.empty()) return std::string(container);
  std::string_view body = text;
  if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
  body.remove_prefix(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
  for (const Signature& s : kText) {
    const std::string_view start = body.substr(0, s.bytes.size());
    if (std::equal(start.begin(), start.end(), s.bytes.begin(), s.bytes.end(),
                   [](char a, char b) { return lower(a) == b; })) {
      return std::string(s.words);
    }
  }
  const auto printable = [](char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n'; };
  if (std::all_of(text.begin(), text.end(), printable)) return "looks like text";
  std::string words = "starts with";
  static constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < std::min<size_t>(head.size(), 4); ++i) {
    words += " 0x";
    words += kHex[head[i] >> 4];
    words += kHex[head[i] & 15];
  }
  return words;
}

}  // namespace skytrain
