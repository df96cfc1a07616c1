#include "skytrain/weights/zip_writer.h"

#include <libdeflate.h>

#include <algorithm>

#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/zip_format.h"

namespace skytrain::weights {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kChunk = size_t{4} << 20;             // of a write
constexpr uint16_t kExtraPadding = 0x4246;             // "FB": the field that PyTorch pads with
constexpr uint16_t kDate = 0x0021;                     // 1980-01-01, the first that the format knows
constexpr uint16_t kVersion = 20, kVersionZip64 = 45;  // of the format, needed to read the member
constexpr size_t kExtraHeader = 4, kZip64LocalExtra = kExtraHeader + 16;

uint32_t in_32(uint64_t value, bool zip64) { return zip64 ? zip::kIn64 : static_cast<uint32_t>(value); }

}  // namespace

void ZipWriter::append(std::string_view text) {
  out_.append(text);
  written_ += text.size();
}

void ZipWriter::add(std::string_view name, std::string_view content) {
  add(name, std::as_bytes(std::span(content.data(), content.size())));
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> content) {
  const uint64_t header_at = written_, size = content.size();
  const bool size64 = size >= options_.zip64_from, place64 = header_at >= options_.zip64_from;
  const uint16_t version = size64 || place64 ? kVersionZip64 : kVersion;
  const uint32_t crc = static_cast<uint32_t>(libdeflate_crc32(0, content.data(), content.size()));

  const uint64_t unpadded =
      header_at + zip::kLocalHeaderBytes + name.size() + (size64 ? kZip64LocalExtra : 0) + kExtraHeader;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;

  std::string common;  // what both headers hold, from "version needed" to the length of the name
  append_le<uint16_t>(common, version);
  append_le<uint16_t>(common, zip::kFlagUtf8);
  append_le<uint16_t>(common, zip::kStored);
  append_le<uint16_t>(common, 0);  // time
  append_le<uint16_t>(common, kDate);
  append_le<uint32_t>(common, crc);
  append_le<uint32_t>(common, in_32(size, size64));
  append_le<uint32_t>(common, in_32(size, size64));
  append_le<uint16_t>(common, static_cast<uint16_t>(name.size()));

  std::string local;
  append_le<uint32_t>(local, zip::kLocalHeader);
  local += common;
  append_le<uint16_t>(local, static_cast<uint16_t>((size64 ? kZip64LocalExtra : 0) + kExtraHeader + padding));
  local += name;
  if (size64) {
    append_le<uint16_t>(local, zip::kExtraZip64);
    append_le<uint16_t>(local, 16);
    append_le<uint64_t>(local, size);
    append_le<uint64_t>(local, size);
  }
  append_le<uint16_t>(local, kExtraPadding);
  append_le<uint16_t>(local, static_cast<uint16_t>(padding));
  local.append(static_cast<size_t>(padding), 'Z');
  append(local);
  for (size_t at = 0; at < content.size(); at += kChunk) {
    out_.append(content.subspan(at, std::min(kChunk, content.size() - at)));
  }
  written_ += size;

  std::string extra;
  if (size64 || place64) {
    append_le<uint16_t>(extra, zip::kExtraZip64);
    append_le<uint16_t>(extra, static_cast<uint16_t>((size64 ? 16 : 0) + (place64 ? 8 : 0)));
    if (size64) {
      append_le<uint64_t>(extra, size);
      append_le<uint64_t>(extra, size);
    }
    if (place64) append_le<uint64_t>(extra, header_at);
  }
  append_le<uint32_t>(directory_, zip::kCentralHeader);
  append_le<uint16_t>(directory_, version);  // made by: this version, MS-DOS
  directory_ += common;
  append_le<uint16_t>(directory_, static_cast<uint16_t>(extra.size()));
  directory_.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
  append_le<uint32_t>(directory_, in_32(header_at, place64));
  directory_ += name;
  directory_ += extra;
  ++count_;
}

uint64_t ZipWriter::finish() {
  const uint64_t begin = written_, size = directory_.size();
  append(directory_);
  std::string end;
  const bool place64 = begin >= options_.zip64_from, size64 = size >= options_.zip64_from;
  const bool count64 = count_ >= options_.zip64_members_from;
  if (place64 || size64 || count64) {
    append_le<uint32_t>(end, zip::kEnd64);
    append_le<uint64_t>(end, zip::kEnd64Bytes - 12);  // without what precedes it
    append_le<uint16_t>(end, kVersionZip64);
    append_le<uint16_t>(end, kVersionZip64);
    append_le<uint64_t>(end, 0);  // this disk, the directory's disk
    append_le<uint64_t>(end, count_);
    append_le<uint64_t>(end, count_);
    append_le<uint64_t>(end, size);
    append_le<uint64_t>(end, begin);
    append_le<uint32_t>(end, zip::kEnd64Locator);
    append_le<uint32_t>(end, 0);
    append_le<uint64_t>(end, written_);
    append_le<uint32_t>(end, 1);  // disks
  }
  const uint16_t count = count64 ? zip::kCountIn64 : static_cast<uint16_t>(count_);
  append_le<uint32_t>(end, zip::kEnd);
  append_le<uint32_t>(end, 0);
  append_le<uint16_t>(end, count);
  append_le<uint16_t>(end, count);
  append_le<uint32_t>(end, in_32(size, size64));
  append_le<uint32_t>(end, in_32(begin, place64));
  append_le<uint16_t>(end, 0);  // comment
  append(end);
  return written_;
}

}  // namespace skytrain::weights
