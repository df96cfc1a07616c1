#include "skytrain/data/mds.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "skytrain/base/checksum.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/label_column.h"
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

// Where the offsets of a shard's samples end.
uint64_t head_end(uint64_t samples) { return 4 * (samples + 2); }

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// The sample that this thread has read last: its class is what is wanted next.
struct LastRead {
  uint64_t set = 0, index = 0;
  int32_t label = 0;
};
thread_local LastRead last_read;

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
                               const Limits& limits) {
  return std::unique_ptr<Mds>(new Mds(fs, folder_of(fs, spec.path), spec, options, limits));
}

Mds::Mds(const FileSystem& fs, const std::string& root, const recipe::DatasetSpec& spec, const OpenOptions& options,
         const Limits& limits)
    : EncodedPictures(spec, options),
      fs_(fs),
      root_(root),
      index_(read_index(fs, root)),
      store_(fs, root, index_, limits.unpacked_in_memory),
      id_(next_id()),
      outputs_(options.classes) {
  const size_t shards = index_.shards.size();
  for (size_t i = 0; i < shards; ++i) {
    const uint64_t samples = index_.shards[i].samples, bytes = index_.shards[i].raw.bytes;
    if (bytes < 8) refuse(i, str("has ", bytes, " bytes, too few for a shard"));
    info_.samples += samples;
    ends_.push_back(info_.samples);
  }
  if (info_.samples == 0) throw Error(ErrorKind::kData, root_ + "/index.json", "has no samples");
  large_ = info_.samples > limits.samples_in_memory;
  if (large_) counted_ = std::make_unique<std::atomic<bool>[]>(shards);
  info_.classes = outputs_;
  if (!large_ || (outputs_ == 0 && options.count_classes)) read_tables();
  describe(options);
}

void Mds::read_tables() {
  if (!large_) tables_.resize(index_.shards.size());
  std::vector<int64_t> classes(index_.shards.size());
  for_each_parallel(index_.shards.size(), [&](uint64_t i) {
    const size_t shard = static_cast<size_t>(i);
    Table table = read_table(shard);
    for (const int32_t label : table.labels) classes[shard] = std::max(classes[shard], int64_t{label} + 1);
    if (!large_) tables_[shard] = std::move(table);
  });
  info_.classes = *std::max_element(classes.begin(), classes.end());
}

void Mds::refuse(size_t shard, const std::string& what) const {
  throw Error(ErrorKind::kData, store_.path(shard), what, kAgain);
}

void Mds::check_count(size_t shard) const {
  const uint64_t samples = index_.shards[shard].samples, bytes = index_.shards[shard].raw.bytes;
  uint8_t own[4];
  store_.read(shard, 0, std::as_writable_bytes(std::span(own)));
  if (little_endian(own) != samples) {
    refuse(shard,
           str("holds ", little_endian(own), " samples, index.json says ", samples, " (shards[", shard, "].samples)"));
  }
  if (head_end(samples) > bytes) refuse(shard, str("ends at byte ", bytes, ", within the offsets of its samples"));
}

Mds::Table Mds::read_table(size_t shard) const {
  check_count(shard);
  const uint64_t samples = index_.shards[shard].samples, bytes = index_.shards[shard].raw.bytes;
  const uint64_t first = head_end(samples);
  FileSource source = store_.source(shard);
  Table table;
  table.offsets.reserve(static_cast<size_t>(samples) + 1);
  table.labels.reserve(static_cast<size_t>(samples));
  const std::span<const uint8_t> offsets = source.bytes(4, static_cast<size_t>(first - 4));
  for (size_t at = 0; at < offsets.size(); at += 4) {
    table.offsets.push_back(static_cast<uint32_t>(little_endian(offsets.subspan(at, 4))));
  }
  if (table.offsets.front() < first || !std::is_sorted(table.offsets.begin(), table.offsets.end()) ||
      table.offsets.back() != bytes) {
    refuse(shard, "is damaged: the offsets of its samples don't rise from its head to its end");
  }
  const uint64_t head_bytes = mds_head_bytes(index_);
  FingerprintHash hash;
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t begin = table.offsets[i], size = table.offsets[i + 1] - begin;
    const Place place{shard, static_cast<size_t>(i)};
    const MdsValue value =
        find(index_.label, place, source.bytes(begin, static_cast<size_t>(std::min(size, head_bytes))), size);
    const int32_t label = read_label(source.bytes(begin + value.offset, static_cast<size_t>(value.size)), place);
    table.labels.push_back(label);
    hash.number(size);
    hash.number(static_cast<uint64_t>(label));
  }
  table.hash = hash.hex();
  return table;
}

int32_t Mds::read_label(std::span<const uint8_t> bytes, const Place& place) const {
  const uint64_t value = little_endian(bytes);
  const bool negative = index_.label_is_signed() && (bytes.back() & 0x80) != 0;
  const bool number = !negative && value < LabelColumn::kMostClasses;
  if (number && (outputs_ == 0 || value < static_cast<uint64_t>(outputs_))) return static_cast<int32_t>(value);
  const std::string where = str(store_.path(place.shard), "[", place.sample, "]");
  const std::string column = str("column \"", printable(index_.columns[index_.label].name), "\" holds ");
  if (!number) {
    throw Error(ErrorKind::kData, where,
                column + (negative ? "a negative number" : std::to_string(value)) + ", no class",
                "classes are numbered from 0");
  }
  throw Error(ErrorKind::kData, where,
              str(column, "class ", value, ", the model has ", outputs_, outputs_ == 1 ? " output" : " outputs"),
              "classes are numbered from 0; set model.classes, or write the data set anew");
}

void Mds::describe(const OpenOptions& options) {
  info_.format = "mds";
  info_.channels = 3;
  info_.height = info_.width = size();
  info_.bytes_in_memory = store_.bytes_in_memory() + index_.shards.capacity() * (sizeof(MdsShard) + sizeof(uint64_t));
  for (const Table& table : tables_) {
    info_.bytes_in_memory += 4 * (table.offsets.capacity() + table.labels.capacity()) + sizeof table;
  }
  info_.fingerprint = fingerprint();
  if (!store_.note().empty()) info_.notes.push_back(store_.note());
  if (!index_.label_by_name) {
    info_.notes.push_back(str(root_, ": classes are those of column \"", printable(index_.columns[index_.label].name),
                              "\", the only one of integers"));
  }
  if (options.train != nullptr) info_.class_names = options.train->class_names;
  if (!info_.class_names.empty()) info_.classes = static_cast<int64_t>(info_.class_names.size());
}

// Of a large set it is the same whether the set was read or not.
std::string Mds::fingerprint() const {
  FingerprintHash hash;
  hash.text(large_ ? "mds index" : "mds");
  hash.text(index_.columns[index_.picture].name);
  hash.text(index_.columns[index_.label].name);
  hash.number(index_.shards.size());
  for (size_t i = 0; i < index_.shards.size(); ++i) {
    const MdsFile& raw = index_.shards[i].raw;
    hash.text(raw.name);
    hash.number(index_.shards[i].samples);
    if (!large_) {
      hash.text(tables_[i].hash);
      continue;
    }
    hash.number(raw.bytes);
    hash.number(raw.hashes.size());
    for (const auto& [kind, digits] : raw.hashes) {
      hash.text(kind);
      hash.text(digits);
    }
  }
  return hash.hex();
}

Mds::Place Mds::place(uint64_t index) const {
  const size_t shard = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {shard, static_cast<size_t>(index - (shard == 0 ? 0 : ends_[shard - 1]))};
}

Mds::Extent Mds::extent(const Place& place) const {
  const auto& [shard, sample] = place;
  if (!large_) {
    const uint32_t begin = tables_[shard].offsets[sample];
    return {begin, tables_[shard].offsets[sample + 1] - begin};
  }
  if (!counted_[shard].load(std::memory_order_relaxed)) {
    check_count(shard);
    counted_[shard].store(true, std::memory_order_relaxed);
  }
  uint8_t offsets[8];
  store_.read(shard, 4 + 4 * uint64_t{sample}, std::as_writable_bytes(std::span(offsets)));
  const uint64_t begin = little_endian(std::span(offsets).first(4)), end = little_endian(std::span(offsets).last(4));
  const uint64_t first = head_end(index_.shards[shard].samples), bytes = index_.shards[shard].raw.bytes;
  const bool last = sample + 1 == index_.shards[shard].samples;
  if (begin < first || end < begin || end > bytes || (last && end != bytes)) {
    refuse(shard, str("is damaged: sample ", sample, " is said to lie in bytes ", begin, " to ", end,
                      ", and samples lie one after the other in bytes ", first, " to ", bytes));
  }
  return {begin, end - begin};
}

// Where a column lies in a sample of `bytes` bytes; head: those that it begins with, all of its sizes if it has so
// many.
MdsValue Mds::find(size_t column, const Place& place, std::span<const uint8_t> head, uint64_t bytes) const {
  const auto value = head.size() < mds_head_bytes(index_) ? std::nullopt : find_mds_value(index_, column, head, bytes);
  if (value) return *value;
  refuse(place.shard, str("is damaged: sample ", place.sample, " has ", bytes,
                          " bytes, and the sizes of its columns add up to others"));
}

MdsValue Mds::find_on_disk(size_t column, const Place& place, const Extent& extent) const {
  std::vector<uint8_t> head(static_cast<size_t>(std::min(mds_head_bytes(index_), extent.bytes)));
  store_.read(place.shard, extent.begin, std::as_writable_bytes(std::span(head)));
  return find(column, place, head, extent.bytes);
}

int64_t Mds::label(uint64_t index) const {
  if (last_read.set == id_ && last_read.index == index) return last_read.label;
  const Place at = place(index);
  if (!large_) return tables_[at.shard].labels[at.sample];
  const Extent extent = this->extent(at);
  const MdsValue value = find_on_disk(index_.label, at, extent);
  uint8_t bytes[8];
  const std::span<uint8_t> read = std::span(bytes).first(static_cast<size_t>(value.size));
  store_.read(at.shard, extent.begin + value.offset, std::as_writable_bytes(read));
  return read_label(read, at);
}

std::string Mds::name(uint64_t index) const {
  const Place at = place(index);
  return printable(str(index_.shards[at.shard].raw.name, "[", at.sample, "]"), kLongestName);
}

uint64_t Mds::encoded_bytes(uint64_t index) const {
  const Place at = place(index);
  return find_on_disk(index_.picture, at, extent(at)).size;
}

std::span<const uint8_t> Mds::encoded(uint64_t index, Scratch& scratch) const {
  const Place at = place(index);
  scratch.path.assign(store_.path(at.shard)).append("[").append(std::to_string(at.sample)).append("]");
  const auto [begin, bytes] = extent(at);
  const std::span<uint8_t> read(scratch.encoded.room(static_cast<size_t>(bytes), scratch.path),
                                static_cast<size_t>(bytes));
  store_.read(at.shard, begin, std::as_writable_bytes(read));
  const MdsValue value = find(index_.picture, at, read, bytes);
  if (large_) {
    const MdsValue label = find(index_.label, at, read, bytes);
    last_read = {id_, index,
                 read_label(read.subspan(static_cast<size_t>(label.offset), static_cast<size_t>(label.size)), at)};
  }
  return read.subspan(static_cast<size_t>(value.offset), static_cast<size_t>(value.size));
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
