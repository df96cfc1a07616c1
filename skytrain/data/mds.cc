#include "skytrain/data/mds.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "skytrain/base/checksum.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/mds_sample.h"
#include "skytrain/data/parallel.h"

namespace skytrain::data {
namespace {

constexpr const char* kAgain = "copy or download the shard and index.json again";
constexpr size_t kLongestName = 4096;

std::string folder_of(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  const std::string expected = "expected the folder of index.json and its shards";
  if (!info) throw Error(ErrorKind::kData, path, "no such folder", expected);
  if (info->type == FileInfo::Type::kDirectory) return path;
  if (path.ends_with("/index.json")) return path.substr(0, path.rfind('/'));
  throw Error(ErrorKind::kData, path, "is a file, " + expected);
}

MdsIndex read_index(const FileSystem& fs, const std::string& root) {
  const std::string path = root + "/index.json";
  if (!fs.exists(path)) throw Error(ErrorKind::kData, path, "is not there", folder_content(fs, root));
  return parse_mds_index(fs.read_file(path), path);
}

[[noreturn]] void refuse_change(const std::string& path) {
  throw Error(ErrorKind::kData, path, "has changed since it was opened", "let nothing write to it meanwhile");
}

std::string checksum_of(const FileSystem& fs, const std::string& path, uint64_t bytes, const std::string& kind) {
  const std::unique_ptr<Checksum> checksum = Checksum::make(kind);
  std::vector<std::byte> block(size_t{1} << 20);
  for (uint64_t offset = 0; offset < bytes; offset += block.size()) {
    const auto piece = std::span(block).first(static_cast<size_t>(std::min<uint64_t>(block.size(), bytes - offset)));
    fs.read_range(path, offset, piece);
    checksum->update(piece);
  }
  return checksum->hex();
}

}  // namespace

std::unique_ptr<Mds> Mds::open(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options,
                               uint64_t memory_limit) {
  return std::unique_ptr<Mds>(new Mds(fs, folder_of(fs, spec.path), spec, options, memory_limit));
}

Mds::Mds(const FileSystem& fs, const std::string& root, const recipe::DatasetSpec& spec, const OpenOptions& options,
         uint64_t memory_limit)
    : EncodedPictures(spec, options),
      fs_(fs),
      root_(root),
      index_(read_index(fs, root)),
      store_(fs, root, index_, memory_limit) {
  tables_.resize(index_.shards.size());
  for_each_parallel(tables_.size(), [&](uint64_t i) {
    tables_[static_cast<size_t>(i)] = read_table(static_cast<size_t>(i), options.classes);
  });
  describe(options);
}

Mds::Table Mds::read_table(size_t shard, int64_t classes) const {
  const std::string& path = store_.path(shard);
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::kData, path, what, kAgain); };
  const uint64_t samples = index_.shards[shard].samples, bytes = index_.shards[shard].raw.bytes;
  FileSource source = store_.source(shard);
  if (bytes < 8) refuse(str("has ", bytes, " bytes, too few for a shard"));
  const uint64_t own = little_endian(source.bytes(0, 4));
  if (own != samples) {
    refuse(str("holds ", own, " samples, index.json says ", samples, " (shards[", shard, "].samples)"));
  }
  const uint64_t first = 4 * (samples + 2);
  if (first > bytes) refuse(str("ends at byte ", bytes, ", within the offsets of its samples"));
  Table table;
  const std::span<const uint8_t> offsets = source.bytes(4, static_cast<size_t>(first - 4));
  for (size_t at = 0; at < offsets.size(); at += 4) {
    table.offsets.push_back(static_cast<uint32_t>(little_endian(offsets.subspan(at, 4))));
  }
  if (table.offsets.front() < first || !std::is_sorted(table.offsets.begin(), table.offsets.end()) ||
      table.offsets.back() != bytes) {
    refuse("is damaged: the offsets of its samples don't rise from its head to its end");
  }
  const size_t head_bytes = static_cast<size_t>(mds_head_bytes(index_));
  FingerprintHash hash;
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t begin = table.offsets[i], size = table.offsets[i + 1] - begin;
    const auto value =
        size < head_bytes ? std::nullopt : find_mds_value(index_, index_.label, source.bytes(begin, head_bytes), size);
    if (!value) {
      refuse(str("is damaged: sample ", i, " has ", size, " bytes, and the sizes of its columns add up to others"));
    }
    const int32_t label =
        read_label(source.bytes(begin + value->offset, static_cast<size_t>(value->size)), shard, i, classes);
    table.labels.push_back(label);
    hash.number(size);
    hash.number(static_cast<uint64_t>(label));
  }
  table.hash = hash.hex();
  return table;
}

int32_t Mds::read_label(std::span<const uint8_t> bytes, size_t shard, uint64_t sample, int64_t classes) const {
  const std::string where = str(store_.path(shard), "[", sample, "]");
  const std::string& column = index_.columns[index_.label].name;
  const uint64_t value = little_endian(bytes);
  const bool negative = index_.label_is_signed() && (bytes.back() & 0x80) != 0;
  if (negative || value >= static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(
        ErrorKind::kData, where,
        str("column \"", printable(column), "\" holds ", negative ? "a negative number" : str(value), ", no class"),
        "classes are numbered from 0");
  }
  if (classes > 0 && value >= static_cast<uint64_t>(classes)) {
    throw Error(ErrorKind::kData, where,
                str("column \"", printable(column), "\" holds class ", value, ", the model has ", classes,
                    classes == 1 ? " output" : " outputs"),
                "classes are numbered from 0; set model.classes, or write the data set anew");
  }
  return static_cast<int32_t>(value);
}

void Mds::describe(const OpenOptions& options) {
  info_.format = "mds";
  info_.channels = 3;
  info_.height = info_.width = size();
  info_.bytes_in_memory = store_.bytes_in_memory();
  FingerprintHash hash;
  hash.text("mds");
  hash.text(index_.columns[index_.picture].name);
  hash.text(index_.columns[index_.label].name);
  hash.number(tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    info_.samples += table.labels.size();
    ends_.push_back(info_.samples);
    info_.bytes_in_memory += 4 * (table.offsets.capacity() + table.labels.capacity()) + sizeof table;
    for (const int32_t label : table.labels) info_.classes = std::max<int64_t>(info_.classes, int64_t{label} + 1);
    hash.text(index_.shards[i].raw.name);
    hash.number(table.labels.size());
    hash.text(table.hash);
  }
  info_.fingerprint = hash.hex();
  if (info_.samples == 0) throw Error(ErrorKind::kData, root_ + "/index.json", "has no samples");
  if (!store_.note().empty()) info_.notes.push_back(store_.note());
  if (!index_.label_by_name) {
    info_.notes.push_back(str(root_, ": classes are those of column \"", printable(index_.columns[index_.label].name),
                              "\", the only one of integers"));
  }
  if (options.train != nullptr) info_.class_names = options.train->class_names;
  if (!info_.class_names.empty()) info_.classes = static_cast<int64_t>(info_.class_names.size());
}

Mds::Place Mds::place(uint64_t index) const {
  const size_t shard = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {shard, static_cast<size_t>(index - (shard == 0 ? 0 : ends_[shard - 1]))};
}

int64_t Mds::label(uint64_t index) const {
  const Place at = place(index);
  return tables_[at.shard].labels[at.sample];
}

std::string Mds::name(uint64_t index) const {
  const Place at = place(index);
  return printable(str(index_.shards[at.shard].raw.name, "[", at.sample, "]"), kLongestName);
}

uint64_t Mds::encoded_bytes(uint64_t index) const {
  const auto [shard, sample] = place(index);
  const uint32_t begin = tables_[shard].offsets[sample];
  std::vector<uint8_t> head(static_cast<size_t>(mds_head_bytes(index_)));
  store_.read(shard, begin, std::as_writable_bytes(std::span(head)));
  const auto value = find_mds_value(index_, index_.picture, head, tables_[shard].offsets[sample + 1] - begin);
  if (!value) refuse_change(store_.path(shard));
  return value->size;
}

std::span<const uint8_t> Mds::encoded(uint64_t index, Scratch& scratch) const {
  const auto [shard, sample] = place(index);
  scratch.path.assign(store_.path(shard)).append("[").append(std::to_string(sample)).append("]");
  const uint32_t begin = tables_[shard].offsets[sample];
  const size_t bytes = tables_[shard].offsets[sample + 1] - begin;
  const std::span<uint8_t> read(scratch.encoded.room(bytes, scratch.path), bytes);
  store_.read(shard, begin, std::as_writable_bytes(read));
  const auto value = find_mds_value(index_, index_.picture, read, bytes);
  if (!value) refuse_change(store_.path(shard));
  return read.subspan(static_cast<size_t>(value->offset), static_cast<size_t>(value->size));
}

FileCheck Mds::check_files() const {
  struct Item {
    const MdsFile& file;
    const std::string &kind, &expected;
    std::string damage;
  };
  FileCheck check;
  std::vector<Item> items;
  std::set<std::string> unknown;
  for (const MdsShard& shard : index_.shards) {
    for (const MdsFile* file : {&shard.raw, shard.packed ? &*shard.packed : nullptr}) {
      if (file == nullptr || !fs_.exists(root_ + "/" + file->name)) continue;
      const size_t before = items.size();
      for (const auto& [kind, expected] : file->hashes) {
        if (Checksum::make(kind) != nullptr) {
          items.push_back({*file, kind, expected, ""});
        } else {
          unknown.insert(kind);
        }
      }
      if (items.size() > before) ++check.files;
    }
  }
  for_each_parallel(items.size(), [&](uint64_t i) {
    Item& item = items[static_cast<size_t>(i)];
    const std::string path = root_ + "/" + item.file.name, hex = checksum_of(fs_, path, item.file.bytes, item.kind);
    if (hex == item.expected) return;
    item.damage =
        str(path, ": is damaged: its ", item.kind, " is ", hex, ", index.json says ", printable(item.expected));
  });
  for (Item& item : items) {
    if (!item.damage.empty()) check.damage.push_back(std::move(item.damage));
  }
  check.unknown.assign(unknown.begin(), unknown.end());
  return check;
}

}  // namespace skytrain::data
