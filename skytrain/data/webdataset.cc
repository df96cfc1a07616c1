#include "skytrain/data/webdataset.h"

#include <algorithm>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/parallel.h"
#include "skytrain/data/tar.h"
#include "skytrain/data/webdataset_names.h"

namespace skytrain::data {
namespace {

constexpr size_t kLongestName = 4096;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::unique_ptr<Webdataset> Webdataset::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                             const OpenOptions& options) {
  return std::unique_ptr<Webdataset>(new Webdataset(fs, spec, options));
}

Webdataset::Webdataset(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options)
    : EncodedPictures(spec, options), fs_(fs) {
  std::vector<std::string> passed_over;
  const std::vector<std::string> paths =
      list_shards(fs, spec.path, options.eval ? "data.eval.path" : "data.train.path", passed_over);
  shards_.resize(paths.size());
  for_each_parallel(paths.size(),
                    [&](uint64_t i) { shards_[i] = index_webdataset_shard(fs, paths[i], options.classes); });
  describe(spec.path, options, std::move(passed_over));
}

void Webdataset::describe(const std::string& path, const OpenOptions& options, std::vector<std::string> passed_over) {
  info_.format = "webdataset";
  info_.channels = 3;
  info_.height = info_.width = size();
  std::vector<std::string> empty;
  FingerprintHash hash;
  hash.text("webdataset");
  hash.number(shards_.size());
  for (const WebdatasetShard& shard : shards_) {
    info_.samples += shard.samples.size();
    ends_.push_back(info_.samples);
    info_.bytes_in_memory += shard.samples.capacity() * sizeof(WebdatasetSample) + sizeof shard;
    for (const WebdatasetSample& sample : shard.samples) {
      info_.classes = std::max<int64_t>(info_.classes, sample.label + 1);
    }
    if (shard.samples.empty()) empty.push_back(file_name(shard.path));
    for (const std::string& name : shard.passed_over) passed_over.push_back(file_name(shard.path) + ": " + name);
    hash.text(file_name(shard.path));
    hash.number(shard.samples.size());
    hash.text(shard.hash);
  }
  info_.fingerprint = hash.hex();
  if (info_.samples == 0) throw Error(ErrorKind::kData, path, "has no samples: its archives are empty");
  if (!empty.empty()) info_.notes.push_back(path + ": shards without samples: " + first_names(std::move(empty)));
  if (!passed_over.empty()) {
    const std::string names = printable(first_names(std::move(passed_over), /*shown=*/20), kLongestName);
    info_.notes.push_back(path + ": passed over what belongs to no sample: " + names);
  }
  // Labels are those of the training set already: they are numbers, and index_webdataset_shard() has compared them.
  if (options.train != nullptr) info_.class_names = options.train->class_names;
  if (!info_.class_names.empty()) info_.classes = static_cast<int64_t>(info_.class_names.size());
}

std::pair<const WebdatasetShard&, const WebdatasetSample&> Webdataset::sample(uint64_t index) const {
  const size_t i = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {shards_[i], shards_[i].samples[static_cast<size_t>(index - (i == 0 ? 0 : ends_[i - 1]))]};
}

std::string Webdataset::name(uint64_t index) const {
  const auto [shard, sample] = this->sample(index);
  const uint64_t start = sample.start * kTarBlock, data = sample.data * kTarBlock;
  std::vector<uint8_t> headers(static_cast<size_t>(data - start));
  fs_.read_range(shard.path, start, std::as_writable_bytes(std::span(headers)));
  MemorySource source(headers, start);
  const std::optional<TarMember> member = read_tar_member(source, start, shard.path, /*whole=*/false);
  return printable(str(file_name(shard.path), ": ", member ? member->name : ""), kLongestName);
}

std::span<const uint8_t> Webdataset::encoded(uint64_t index, Scratch& scratch) const {
  const auto [shard, sample] = this->sample(index);
  const uint64_t start = sample.start * kTarBlock, data = sample.data * kTarBlock;
  const size_t bytes = static_cast<size_t>(data - start) + sample.size;
  const std::span<uint8_t> read(scratch.encoded.room(bytes, shard.path), bytes);
  fs_.read_range(shard.path, start, std::as_writable_bytes(read));
  MemorySource source(read, start);
  const std::optional<TarMember> member = read_tar_member(source, start, shard.path);
  if (!member || member->data != data || member->size != sample.size) {
    throw Error(ErrorKind::kData, shard.path, "has changed since it was opened", "let nothing write to it meanwhile");
  }
  scratch.path.assign(shard.path).append(": ").append(member->name);
  return read.subspan(static_cast<size_t>(data - start));
}

}  // namespace skytrain::data
