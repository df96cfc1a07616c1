#include "skytrain/weights/zip_reader.h"

#include <libdeflate.h>

#include <algorithm>

#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/zip_format.h"

namespace skytrain::weights {
namespace {

using zip::kIn64;

// Unsigned number at `at` of `bytes`; the caller has checked that it is inside.
template <class Unsigned>
Unsigned load(std::span<const std::byte> bytes, uint64_t at) {
  return load_le<Unsigned>(bytes.data() + at);
}

std::string quoted(std::string_view name) { return str("\"", printable(name), "\""); }

// The fields of a directory entry that are too large for 32 bits, in the fixed order of the zip64 field.
void apply_zip64(std::span<const std::byte> extra, uint64_t& size, uint64_t& stored_size, uint64_t* header_at,
                 std::string_view name, const Refusal& refuse) {
  const bool wanted = size == kIn64 || stored_size == kIn64 || (header_at != nullptr && *header_at == kIn64);
  if (!wanted) return;
  uint64_t at = 0;
  while (extra.size() - at >= 4) {
    const uint16_t id = load<uint16_t>(extra, at), length = load<uint16_t>(extra, at + 2);
    at += 4;
    if (length > extra.size() - at) break;
    if (id == zip::kExtraZip64) {
      uint64_t field = at;
      const auto take = [&](uint64_t& value) {
        if (value != kIn64) return;
        if (at + length - field < 8) refuse(str("has a zip64 field that is too short, of member ", quoted(name)));
        value = load<uint64_t>(extra, field);
        field += 8;
      };
      take(size);
      take(stored_size);
      if (header_at != nullptr) take(*header_at);
      return;
    }
    at += length;
  }
  refuse(str("has no zip64 field for the size of member ", quoted(name)));
}

// No reader of ours unpacks to the disk, but whoever passes the file on may.
void check_name(std::string_view name, const Refusal& refuse) {
  const auto bad = [&](const char* why) { refuse(str("has a member named ", quoted(name), ", ", why, ": refused")); };
  if (name.empty()) refuse("has a member without a name");
  if (name.front() == '/') bad("an absolute path");
  if (name.find('\\') != name.npos) bad("with a backslash");
  if (name.find('\0') != name.npos) bad("with a zero byte");
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") bad("which leads out of its folder");
    begin = end + 1;
  }
}

ZipMember parse_entry(std::span<const std::byte> entry, std::string_view name, std::span<const std::byte> extra,
                      uint64_t directory_begin, const Refusal& refuse) {
  check_name(name, refuse);
  ZipMember member;
  member.name = name;
  member.flags = load<uint16_t>(entry, 8);
  member.method = load<uint16_t>(entry, 10);
  member.crc32 = load<uint32_t>(entry, 16);
  member.stored_size = load<uint32_t>(entry, 20);
  member.size = load<uint32_t>(entry, 24);
  member.header_at = load<uint32_t>(entry, 42);
  apply_zip64(extra, member.size, member.stored_size, &member.header_at, name, refuse);
  if ((member.flags & zip::kFlagEncrypted) != 0) refuse(str("has an encrypted member, ", quoted(name)));
  if (member.method == zip::kStored && member.stored_size != member.size) {
    refuse(str("says that member ", quoted(name), " is ", member.size, " bytes and takes ", member.stored_size));
  }
  if (member.header_at > directory_begin || member.stored_size > directory_begin - member.header_at) {
    refuse(str("says that member ", quoted(name), " takes ", member.stored_size, " bytes at byte ", member.header_at,
               ", past the end of the file's data"),
           kFetchAgain);
  }
  return member;
}

}  // namespace

ZipDirectoryPlace locate_zip_directory(std::span<const std::byte> tail, uint64_t archive_bytes, const Refusal& refuse) {
  const auto cut_short = [&] {
    refuse("is a zip archive without its end: the file is cut short, or something was added to it", kFetchAgain);
  };
  if (tail.size() < zip::kEndBytes) cut_short();
  // The end record, whose comment must reach to the end of the file.
  const uint64_t last = tail.size() - zip::kEndBytes;
  uint64_t at = last;
  while (load<uint32_t>(tail, at) != zip::kEnd) {
    if (at == 0 || last - at == zip::kMaxComment) cut_short();
    --at;
  }
  const uint64_t comment = load<uint16_t>(tail, at + 20);
  if (comment != last - at) {
    refuse(str("is a zip archive with ", last - at, " bytes after its end, where its comment takes ", comment),
           kFetchAgain);
  }
  ZipDirectoryPlace place;
  place.count = load<uint16_t>(tail, at + 10);
  place.size = load<uint32_t>(tail, at + 12);
  place.begin = load<uint32_t>(tail, at + 16);
  uint64_t disks = load<uint16_t>(tail, at + 4), count_here = load<uint16_t>(tail, at + 8);
  uint64_t end = archive_bytes - tail.size() + at;  // where the directory must end

  if (at >= zip::kEnd64LocatorBytes && load<uint32_t>(tail, at - zip::kEnd64LocatorBytes) == zip::kEnd64Locator) {
    const uint64_t locator = at - zip::kEnd64LocatorBytes;
    const uint64_t record = load<uint64_t>(tail, locator + 8);
    const uint64_t tail_begin = archive_bytes - tail.size();
    // Directly before its locator, and without the extension that nobody writes.
    if (locator < zip::kEnd64Bytes || record != tail_begin + locator - zip::kEnd64Bytes ||
        load<uint32_t>(tail, record - tail_begin) != zip::kEnd64) {
      refuse("is a damaged zip archive: its zip64 end record is not where it should be", kFetchAgain);
    }
    const uint64_t in_tail = record - tail_begin;
    disks = uint64_t{load<uint32_t>(tail, in_tail + 16)} + load<uint32_t>(tail, in_tail + 20);
    count_here = load<uint64_t>(tail, in_tail + 24);
    place.count = load<uint64_t>(tail, in_tail + 32);
    place.size = load<uint64_t>(tail, in_tail + 40);
    place.begin = load<uint64_t>(tail, in_tail + 48);
    end = record;
  }
  if (disks != 0 || count_here != place.count) refuse("is one part of a zip archive in several files");
  if (place.size > end || place.begin != end - place.size) {
    refuse(str("is a damaged zip archive: its directory should be ", place.size, " bytes at byte ", place.begin,
               " and end at ", end),
           kFetchAgain);
  }
  if (place.count > place.size / zip::kCentralHeaderBytes) {
    refuse(str("is a damaged zip archive: a directory of ", place.size, " bytes can't list ", place.count, " members"),
           kFetchAgain);
  }
  return place;
}

std::vector<ZipMember> parse_zip_directory(std::span<const std::byte> directory, const ZipDirectoryPlace& place,
                                           const Refusal& refuse) {
  std::vector<ZipMember> members;
  members.reserve(static_cast<size_t>(place.count));
  uint64_t at = 0;
  for (uint64_t i = 0; i < place.count; ++i) {
    if (directory.size() - at < zip::kCentralHeaderBytes || load<uint32_t>(directory, at) != zip::kCentralHeader) {
      refuse(str("is a damaged zip archive: entry ", i + 1, " of ", place.count, " of its directory is none"),
             kFetchAgain);
    }
    const std::span<const std::byte> entry = directory.subspan(at, zip::kCentralHeaderBytes);
    const uint64_t name = load<uint16_t>(entry, 28), extra = load<uint16_t>(entry, 30);
    const uint64_t rest = name + extra + load<uint16_t>(entry, 32);
    at += zip::kCentralHeaderBytes;
    if (rest > directory.size() - at) {
      refuse(str("is a damaged zip archive: entry ", i + 1, " of its directory is cut short"), kFetchAgain);
    }
    members.push_back(parse_entry(entry, as_text(directory.subspan(at, name)), directory.subspan(at + name, extra),
                                  place.begin, refuse));
    at += rest;
  }
  if (at != directory.size()) {
    refuse(str("is a damaged zip archive: its directory has ", directory.size() - at, " bytes after its last entry"),
           kFetchAgain);
  }
  return members;
}

ZipReader::ZipReader(std::span<const std::byte> archive, const Refusal& refuse) : archive_(archive), refuse_(refuse) {
  const ZipDirectoryPlace place =
      locate_zip_directory(archive.last(std::min(archive.size(), kZipTail)), archive.size(), refuse);
  directory_begin_ = place.begin;
  members_ = parse_zip_directory(archive.subspan(place.begin, place.size), place, refuse);
  std::sort(members_.begin(), members_.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.header_at < b.header_at; });
  uint64_t end = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    ZipMember& member = members_[i];
    if (member.header_at < end) {
      refuse(str("has members that overlap: ", quoted(members_[i - 1].name), " and ", quoted(member.name)));
    }
    end = end_of(member);
    has_checksums_ |= member.crc32 != 0;
    by_name_.push_back(&member);
  }
  std::sort(by_name_.begin(), by_name_.end(), [](const ZipMember* a, const ZipMember* b) { return a->name < b->name; });
  for (size_t i = 1; i < by_name_.size(); ++i) {
    if (by_name_[i]->name == by_name_[i - 1]->name) refuse(str("has two members named ", quoted(by_name_[i]->name)));
  }
}

uint64_t ZipReader::end_of(ZipMember& member) {
  const auto differs = [&](const char* what) {
    refuse_(str("is a damaged zip archive: member ", quoted(member.name), " has ", what), kFetchAgain);
  };
  if (directory_begin_ - member.header_at < zip::kLocalHeaderBytes ||
      load<uint32_t>(archive_, member.header_at) != zip::kLocalHeader) {
    differs("no header of its own");
  }
  const std::span<const std::byte> header = archive_.subspan(member.header_at, zip::kLocalHeaderBytes);
  const uint16_t flags = load<uint16_t>(header, 6), method = load<uint16_t>(header, 8);
  const uint64_t name = load<uint16_t>(header, 26), extra = load<uint16_t>(header, 28);
  const uint64_t name_at = member.header_at + zip::kLocalHeaderBytes;
  if (name + extra > directory_begin_ - name_at) differs("a header that reaches past the file's data");
  if (as_text(archive_.subspan(name_at, name)) != member.name) differs("another name in its own header");
  if (method != member.method) differs("another way of compression in its own header");
  if ((flags & (zip::kFlagDescriptor | zip::kFlagEncrypted)) != (member.flags & zip::kFlagDescriptor)) {
    differs("other flags in its own header");
  }
  member.data_at = name_at + name + extra;
  if (member.stored_size > directory_begin_ - member.data_at) differs("content that reaches past the file's data");
  const uint64_t end = member.data_at + member.stored_size;

  if ((flags & zip::kFlagDescriptor) == 0) {
    uint64_t stored_size = load<uint32_t>(header, 18), size = load<uint32_t>(header, 22);
    apply_zip64(archive_.subspan(name_at + name, extra), size, stored_size, nullptr, member.name, refuse_);
    if (size != member.size || stored_size != member.stored_size) differs("another size in its own header");
    if (load<uint32_t>(header, 14) != member.crc32) differs("another CRC in its own header");
    return end;
  }
  // Sizes and CRC follow the content, in 32 bits each or, by zip64, with sizes of 64.
  const std::span<const std::byte> after = archive_.subspan(end, directory_begin_ - end);
  if (after.size() < 16 || load<uint32_t>(after, 0) != zip::kDataDescriptor) differs("no descriptor after its content");
  if (load<uint32_t>(after, 4) != member.crc32) differs("another CRC after its content");
  if (load<uint32_t>(after, 8) == member.stored_size && load<uint32_t>(after, 12) == member.size) return end + 16;
  if (after.size() < 24 || load<uint64_t>(after, 8) != member.stored_size || load<uint64_t>(after, 16) != member.size) {
    differs("another size after its content");
  }
  return end + 24;
}

const ZipMember* ZipReader::find(std::string_view name) const {
  const auto it = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [](const ZipMember* member, std::string_view key) { return member->name < key; });
  return it != by_name_.end() && (*it)->name == name ? *it : nullptr;
}

std::span<const std::byte> ZipReader::content(const ZipMember& member) const {
  if (member.method != zip::kStored) {
    refuse_(str("has a compressed member, ", quoted(member.name), " (method ", member.method,
                "): PyTorch stores without compression"),
            "unpack the archive and zip it again with compression off (zip -0)");
  }
  const std::span<const std::byte> bytes = archive_.subspan(member.data_at, member.size);
  if (has_checksums_ && libdeflate_crc32(0, bytes.data(), bytes.size()) != member.crc32) {
    refuse_(str("is damaged: the content of its member ", quoted(member.name), " does not match its CRC-32"),
            kFetchAgain);
  }
  return bytes;
}

}  // namespace skytrain::weights
