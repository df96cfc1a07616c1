#include "skytrain/data/tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"

namespace skytrain::data {
namespace {

constexpr uint64_t kLongestExtension = uint64_t{1} << 20;  // of a long name, or of pax records
constexpr size_t kChecksumAt = 148, kChecksumBytes = 8;

using Block = std::span<const uint8_t>;

std::string_view text_of(Block block) { return {reinterpret_cast<const char*>(block.data()), block.size()}; }

// A field of a header: up to its NUL.
std::string_view field(Block header, size_t at, size_t size) {
  const std::string_view text = text_of(header.subspan(at, size));
  return text.substr(0, text.find('\0'));
}

// Octal digits between blanks; or, when the first bit is set, a big-endian number of 256s.
std::optional<uint64_t> number(Block header, size_t at, size_t size) {
  uint64_t value = 0;
  if ((header[at] & 0x80) != 0) {
    value = header[at] & 0x7f;
    for (size_t i = 1; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;  // negative numbers too
      value = value << 8 | header[at + i];
    }
    return value;
  }
  std::string_view digits = field(header, at, size);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3 | static_cast<uint64_t>(c - '0');
  }
  return value;
}

bool is_zero(Block block) {
  return std::all_of(block.begin(), block.end(), [](uint8_t b) { return b == 0; });
}

// The sum of all bytes, the checksum's own taken as blanks; some old writers added them as signed.
bool checksum_fits(Block header) {
  const std::optional<uint64_t> stored = number(header, kChecksumAt, kChecksumBytes);
  int64_t sum = 0, signed_sum = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const uint8_t byte = i >= kChecksumAt && i < kChecksumAt + kChecksumBytes ? ' ' : header[i];
    sum += byte;
    signed_sum += static_cast<int8_t>(byte);
  }
  return stored && (static_cast<int64_t>(*stored) == sum || static_cast<int64_t>(*stored) == signed_sum);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::kData, path, what, hint);
}

[[noreturn]] void refuse_cut(const std::string& path, const std::string& what) {
  refuse(path, "is cut short: " + what, "copy or download it again");
}

[[noreturn]] void refuse_other_content(Block header, const std::string& path) {
  const std::string description = describe_content(header.first(std::min<size_t>(header.size(), 512)));
  if (description == "is gzip" || description.ends_with("Zstandard file") || description.ends_with("bzip2 file") ||
      description.ends_with("xz file")) {
    refuse(path, description + ": compressed archives can't be read at any place, so they are not read",
           "unpack it to a .tar; pictures hardly shrink");
  }
  refuse(path, "is no tar archive: it " + description, "download it again, or see what wrote it");
}

// What the headers before a member's own say about it.
struct Extensions {
  std::optional<std::string> name;
  std::optional<uint64_t> size;
};

// "<length> <key>=<value>\n", again and again; length is that of the whole record.
void read_pax(std::string_view records, bool global, const std::string& path, uint64_t at, Extensions& found) {
  const auto damaged = [&] { refuse(path, str("has a damaged pax header at byte ", at), "copy or download it again"); };
  while (!records.empty() && records.front() != '\0') {
    size_t length = 0, used = 0;
    while (used < records.size() && used < 8 && records[used] >= '0' && records[used] <= '9') {
      length = 10 * length + static_cast<size_t>(records[used++] - '0');
    }
    if (used == 0 || length < used + 3 || length > records.size() || records[used] != ' ' ||
        records[length - 1] != '\n') {
      damaged();
    }
    const std::string_view record = records.substr(used + 1, length - used - 2);
    records.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) damaged();
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) {
      refuse(path, str("holds a sparse file at byte ", at), "make the archive without --sparse");
    }
    if (key != "path" && key != "size") continue;
    if (global) refuse(path, str("has a global pax header with ", key, " at byte ", at), "make the archive anew");
    if (key == "path") {
      if (value.empty() || value.find('\0') != std::string_view::npos) damaged();
      found.name = value;
      continue;
    }
    uint64_t size = 0;
    if (value.empty() || value.size() > 18) damaged();
    for (const char c : value) {
      if (c < '0' || c > '9') damaged();
      size = 10 * size + static_cast<uint64_t>(c - '0');
    }
    found.size = size;
  }
}

std::string name_of(Block header) {
  std::string name(field(header, 0, 100));
  // GNU tar, whose magic differs, has other things in the field of the prefix.
  if (text_of(header.subspan(257, 6)) == std::string_view("ustar\0", 6)) {
    const std::string_view prefix = field(header, 345, 155);
    if (!prefix.empty()) name = str(prefix, "/", name);
  }
  return name;
}

TarMember::Type type_of(char flag, const std::string& name) {
  if (flag == '1' || flag == '2') return TarMember::Type::kLink;
  if (flag == '0' || flag == '\0' || flag == '7') {
    return name.ends_with('/') ? TarMember::Type::kOther : TarMember::Type::kFile;  // a folder before ustar
  }
  return TarMember::Type::kOther;
}

// The content of a header's extension.
std::string_view extension(ByteSource& tar, uint64_t offset, uint64_t size, const std::string& path) {
  if (size > kLongestExtension) {
    refuse(path, str("has a header of ", size, " bytes at byte ", offset), "copy or download it again");
  }
  if (size > tar.size() - offset) refuse_cut(path, str("it ends within the header at byte ", offset));
  return text_of(tar.bytes(offset, static_cast<size_t>(size)));
}

}  // namespace

std::optional<TarMember> read_tar_member(ByteSource& tar, uint64_t offset, const std::string& path, bool whole) {
  TarMember member;
  member.start = offset;
  Extensions extensions;
  while (true) {
    if (offset >= tar.size() || tar.size() - offset < kTarBlock) {
      if (offset == 0) refuse_other_content(tar.bytes(0, static_cast<size_t>(tar.size())), path);
      refuse_cut(path, str("it ends at byte ", tar.size(), " without the end mark of a tar archive"));
    }
    const Block header = tar.bytes(offset, kTarBlock);
    if (is_zero(header)) {
      if (offset == member.start) return std::nullopt;
      refuse_cut(path, str("no file follows the header at byte ", member.start));
    }
    const std::optional<uint64_t> size = number(header, 124, 12);
    if (!checksum_fits(header) || !size) {
      if (offset == 0) refuse_other_content(header, path);
      refuse(path, str("is damaged: there is no header of a tar archive at byte ", offset),
             "copy or download it again");
    }
    const uint64_t data = offset + kTarBlock;
    const char flag = static_cast<char>(header[156]);
    if (flag == 'S') refuse(path, str("holds a sparse file at byte ", offset), "make the archive without --sparse");
    if (flag == 'L') {
      const std::string_view name = extension(tar, data, *size, path);
      extensions.name = name.substr(0, name.find('\0'));
    } else if (flag == 'x' || flag == 'X' || flag == 'g') {
      read_pax(extension(tar, data, *size, path), flag == 'g', path, offset, extensions);
    } else if (flag != 'K') {
      member.name = extensions.name ? *extensions.name : name_of(header);
      member.type = type_of(flag, member.name);
      member.data = data;
      if (member.type == TarMember::Type::kFile) member.size = extensions.size.value_or(*size);
      if (whole && (data > tar.size() || member.size > tar.size() - data)) {
        refuse_cut(path, str(printable(member.name), " has ", member.size, " bytes from byte ", data,
                             ", the archive ends at byte ", tar.size()));
      }
      // Links, devices and folders have no content, whatever their size says; what isn't known has.
      const bool empty = std::string_view("123456").find(flag) != std::string_view::npos || member.name.ends_with('/');
      const uint64_t content = member.type == TarMember::Type::kFile ? member.size : empty ? 0 : *size;
      if (content > UINT64_MAX / 4) refuse_cut(path, str("no file has ", content, " bytes"));
      member.next = data + tar_padded(content);
      return member;
    }
    if (*size > kLongestExtension) {
      refuse(path, str("has a header of ", *size, " bytes at byte ", offset), "copy or download it again");
    }
    offset = data + tar_padded(*size);
  }
}

void check_tar_end(ByteSource& tar, uint64_t offset, const std::string& path) {
  // Writers fill up to 10 KiB, some to more; a second archive follows there.
  constexpr uint64_t kLookedAt = uint64_t{64} << 10;
  const uint64_t end = std::min(tar.size(), offset + kLookedAt);
  if (!is_zero(tar.bytes(offset, static_cast<size_t>(end - offset)))) {
    refuse(path, str("goes on after its end mark at byte ", offset, ", as archives do that were put together by cat"),
           "keep them as files of their own, or put them together with tar --concatenate");
  }
}

std::string tar_header(std::string_view name, uint64_t size) {
  std::string header(kTarBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  const auto octal = [](uint64_t value, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; i-- > 0; value >>= 3) text[i] = static_cast<char>('0' + (value & 7));
    return text;
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, octal(size, 11));
  put(136, octal(0, 11));
  put(kChecksumAt, "        ");
  put(156, "0");
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  put(kChecksumAt, octal(sum, 6));
  put(kChecksumAt + 6, std::string_view("\0 ", 2));
  return header;
}

}  // namespace skytrain::data
