#include "skytrain/data/cifar10.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/gzip.h"

namespace skytrain::data {
namespace {

constexpr int64_t kChannels = 3, kSide = 32;
constexpr size_t kPixels = kChannels * kSide * kSide;
constexpr size_t kRecord = 1 + kPixels;
constexpr int64_t kClasses = 10;
constexpr int kTrainFiles = 5;
constexpr uint64_t kMaxUnpacked = uint64_t{1} << 30;  // five times the whole set: more is a bomb
constexpr char kAgain[] = "download or copy the file again";

struct Files {
  std::string folder;
  std::vector<std::string> names;
  std::vector<std::string> notes;
};

// The number in data_batch_<number>.bin[.gz].
std::optional<int> batch_number(std::string_view name) {
  constexpr std::string_view kPrefix = "data_batch_";
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (!name.starts_with(kPrefix) || !name.ends_with(".bin")) return std::nullopt;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - 4);
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

// Sorted by number; of a plain file and its .gz only the plain one.
std::vector<std::string> training_files(const std::vector<std::string>& names) {
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& name : names) {
    const std::optional<int> number = batch_number(name);
    if (!number) continue;
    const bool packed = name.ends_with(".gz");
    if (packed && std::find(names.begin(), names.end(), name.substr(0, name.size() - 3)) != names.end()) continue;
    found.emplace_back(*number, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> sorted;
  sorted.reserve(found.size());
  for (auto& [number, name] : found) sorted.push_back(std::move(name));
  return sorted;
}

std::vector<std::string> test_files(const std::vector<std::string>& names) {
  for (const char* name : {"test_batch.bin", "test_batch.bin.gz"}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return {name};
  }
  return {};
}

Files find_files(const FileSystem& fs, const recipe::DatasetSpec& spec, bool eval) {
  const bool train = spec.split == "train";
  if (!train && spec.split != "test") {
    throw Error(
        ErrorKind::kRecipe, eval ? "data.eval.split" : "data.train.split",
        str("format cifar10 has no split \"", printable(spec.split), "\"", did_you_mean(spec.split, {"train", "test"})),
        "known: train, test");
  }
  const std::optional<FileInfo> info = fs.stat(spec.path);
  if (!info) {
    throw Error(ErrorKind::kData, spec.path, "no such folder",
                "expected the folder of CIFAR-10's binary version (cifar-10-batches-bin)");
  }
  if (info->type != FileInfo::Type::kDirectory) {
    const size_t slash = spec.path.find_last_of('/');
    if (slash == std::string::npos) return {.folder = ".", .names = {spec.path}, .notes = {}};
    return {.folder = spec.path.substr(0, slash), .names = {spec.path.substr(slash + 1)}, .notes = {}};
  }
  Files files{.folder = spec.path, .names = {}, .notes = {}};
  const std::string inner = spec.path + "/cifar-10-batches-bin";
  for (const std::string& folder : {spec.path, inner}) {
    if (folder == inner && !fs.exists(inner)) continue;
    const std::vector<std::string> names = fs.list(folder);
    files.names = train ? training_files(names) : test_files(names);
    files.folder = folder;
    if (!files.names.empty()) break;
  }
  const std::vector<std::string> there = fs.list(files.folder);
  const auto holds = [&](const char* name) { return std::find(there.begin(), there.end(), name) != there.end(); };
  if (files.names.empty()) {
    std::string hint = folder_content(fs, files.folder);
    if (holds("data_batch_1") || holds("cifar-10-batches-py"))
      hint = "these are the files of the Python version: fetch cifar-10-binary.tar.gz";
    if (holds("cifar-10-binary.tar.gz")) hint = "unpack cifar-10-binary.tar.gz";
    throw Error(ErrorKind::kData, files.folder, train ? "has no data_batch_*.bin" : "has no test_batch.bin", hint);
  }
  if (train && files.names.size() != kTrainFiles) {
    files.notes.push_back(str(files.folder, ": has ", files.names.size(), " of the ", kTrainFiles,
                              " training files of CIFAR-10: ", join(files.names, ", ")));
  }
  return files;
}

// The records of one file, unpacked.
PixelBlock read_records(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info || info->type != FileInfo::Type::kFile) throw Error(ErrorKind::kData, path, "is no file");
  if (info->size == 0) throw Error(ErrorKind::kData, path, "is empty (0 bytes)", kAgain);
  PixelBlock records{.block = allocate_bytes(info->size, path), .offset = 0, .size = info->size};
  const std::span<uint8_t> bytes(records.block.get(), records.size);
  fs.read_range(path, 0, std::as_writable_bytes(bytes));
  const bool packed = is_gzip(bytes);
  if (packed) {
    const size_t size = gunzip_size(bytes, kMaxUnpacked, path);
    PixelBlock unpacked{.block = allocate_bytes(size, path), .offset = 0, .size = size};
    gunzip_exactly(bytes, std::span(unpacked.block.get(), size), path);
    records = std::move(unpacked);
  }
  // The label of the first record is a byte that begins none of the formats that people take for this one.
  const std::span<const uint8_t> head = records.span().first(std::min<size_t>(records.size, 512));
  if (head.empty() || head[0] >= kClasses) {
    const bool promised = path.ends_with(".gz") && !packed;
    throw Error(ErrorKind::kData, path,
                str(promised ? "not gzip (" : "not a file of CIFAR-10's binary version (", describe_content(head), ")"),
                kAgain);
  }
  if (records.size % kRecord != 0) {
    const std::string other = records.size % (kRecord + 1) == 0 ? ", but of 3074 as CIFAR-100 has them" : "";
    throw Error(
        ErrorKind::kData, path,
        str("is ", records.size, " bytes", packed ? " unpacked" : "", ", which is no whole number of records of ",
            kRecord, other.empty() ? ": truncated, or not CIFAR-10" : other),
        other.empty() ? kAgain : "take the files of CIFAR-10");
  }
  return records;
}

void check_labels(std::span<const uint8_t> records, int64_t classes, const std::string& path) {
  const int64_t limit = classes > 0 ? std::min(classes, kClasses) : kClasses;
  for (size_t i = 0; i < records.size() / kRecord; ++i) {
    const int64_t label = records[i * kRecord];
    if (label < limit) continue;
    throw Error(ErrorKind::kData, str(path, "[", i, "]"), str("label ", label, " is outside [0, ", limit, ")"),
                label < kClasses ? str("the model has ", classes, " classes, CIFAR-10 has ", kClasses)
                                 : "the file is damaged, or not one of CIFAR-10's binary version");
  }
}

// Names by label; none when the file is not there or holds something else.
std::vector<std::string> read_class_names(const FileSystem& fs, Files& files) {
  const std::string path = files.folder + "/batches.meta.txt";
  if (!fs.exists(path)) return {};
  const std::string text = fs.read_file(path);
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (name.ends_with('\r')) name.pop_back();
    if (!name.empty()) names.push_back(std::move(name));
    begin = end + 1;
  }
  if (names.size() == static_cast<size_t>(kClasses) && invalid_utf8_at(text) == std::string::npos) return names;
  files.notes.push_back(
      str(path, ": holds ", names.size(), " names of classes, expected ", kClasses, ": the classes stay without"));
  return {};
}

}  // namespace

std::unique_ptr<Cifar10Dataset> Cifar10Dataset::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                                     const OpenOptions& options) {
  Files files = find_files(fs, spec, options.eval);
  std::vector<PixelBlock> blocks;
  std::vector<Source> sources;
  DatasetInfo info;
  info.format = "cifar10";
  info.channels = kChannels;
  info.height = info.width = kSide;
  for (const std::string& name : files.names) {
    const std::string path = files.folder + "/" + name;
    blocks.push_back(read_records(fs, path));
    check_labels(blocks.back().span(), options.classes, path);
    sources.push_back({name, blocks.back().size / kRecord});
    info.samples += sources.back().samples;
  }
  PixelBlock pixels{
      .block = allocate_bytes(info.samples * kPixels, files.folder), .offset = 0, .size = info.samples * kPixels};
  std::vector<int32_t> labels;
  labels.reserve(info.samples);
  uint8_t* out = pixels.block.get();
  for (PixelBlock& block : blocks) {
    const std::span<const uint8_t> records = block.span();
    for (size_t at = 0; at < records.size(); at += kRecord) {
      labels.push_back(records[at]);
      out = std::copy_n(records.data() + at + 1, kPixels, out);
    }
    block = {};  // so that the samples are never held twice
  }
  info.class_names = read_class_names(fs, files);
  info.notes = std::move(files.notes);
  return std::make_unique<Cifar10Dataset>(std::move(info), std::move(pixels), std::move(labels), std::move(sources));
}

}  // namespace skytrain::data
