#include "skytrain/data/pack.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>

#include "skytrain/base/checksum.h"
#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"
#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/parallel.h"
#include "skytrain/data/raw_as_png.h"
#include "skytrain/data/shard_bytes.h"
#include "skytrain/data/zstd.h"
#include "skytrain/image/picture.h"

namespace skytrain::data {
namespace {

std::string xxh64(std::string_view bytes) {
  const auto checksum = Checksum::make("xxh64");
  checksum->update(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return checksum->hex();
}

class Packer {
 public:
  Packer(FileSystem& fs, const EncodedPictures& source, const std::string& destination, const PackOptions& options)
      : fs_(fs), source_(source), folder_(destination), options_(options) {
    if (options_.format == "mds" && options_.zstd_level > 0) compression_ = str("zstd:", options_.zstd_level);
  }

  PackResult run() {
    plan();
    Scratch scratch;
    encoding_ = image::is_png(source_.encoded(0, scratch)) ? "png" : "jpeg";
    open_folder();
    for_each_parallel(
        begins_.size() - 1, [&](uint64_t shard) { pack_shard(static_cast<size_t>(shard)); }, options_.threads);
    if (stopped_) {
      throw Error(ErrorKind::kInterrupted, folder_,
                  str("stopped after ", lines_.size(), " of ", begins_.size() - 1, " shards"),
                  "the same command goes on from there");
    }
    finish_list();
    if (options_.format == "mds") write_index();
    for (const auto& [shard, line] : lines_) result_.bytes += line["bytes"].get<uint64_t>();
    result_.samples = source_.info().samples;
    result_.shards = lines_.size();
    return result_;
  }

 private:
  // Where shards begin, from the sizes of the files alone.
  void plan() {
    uint64_t used = 0;
    for (uint64_t i = 0; i < source_.info().samples; ++i) {
      const uint64_t picture = source_.encoded_bytes(i);
      const uint64_t bytes = options_.format == "mds" ? mds_sample_bytes(picture) : webdataset_sample_bytes(picture);
      if (bytes > kLargestSample) {
        throw Error(ErrorKind::kData, source_.name(i), str("has ", picture, " bytes, too many for a shard"));
      }
      if (i == 0 || used + bytes > options_.shard_bytes) {
        begins_.push_back(i);
        used = 0;
      }
      used += bytes;
    }
    begins_.push_back(source_.info().samples);
  }

  std::string file_name(size_t shard) const {
    char name[64];
    std::snprintf(name, sizeof name, options_.format == "mds" ? "shard.%05zu.mds" : "shard-%06zu.tar", shard);
    return name;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // What the pack is of: another one is not mixed with it.
  Json identity() const {
    return {{"pack", 1},
            {"source", source_.info().fingerprint},
            {"samples", source_.info().samples},
            {"format", options_.format},
            {"compression", compression_},
            {"shard_bytes", options_.shard_bytes},
            {"shards", begins_.size() - 1}};
  }

  void open_folder() {
    fs_.make_directories(folder_);
    const std::string list = path(kList);
    std::vector<std::string> there = fs_.list(folder_);
    std::erase(there, std::string(kList) + ".tmp");
    // A list without shards is all that a call left which met a bad sample: the set may have been mended since.
    const bool nothing_but_list = there == std::vector{std::string(kList)};
    if (!fs_.exists(list) || nothing_but_list) {
      if (!there.empty() && !nothing_but_list) {
        throw Error(ErrorKind::kData, folder_, "is not empty: it holds " + first_names(std::move(there)),
                    "choose a folder that is not there yet");
      }
      write_file_atomically(fs_, list, identity().dump() + "\n");
    } else {
      read_list(fs_.read_file(list));
    }
    list_ = fs_.open_write(list, FileSystem::Mode::kAppend);
    if (torn_) list_->append("\n");
  }

  void read_list(const std::string& text) {
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
      const std::string_view row = std::string_view(text).substr(begin, end - begin);
      Json line;
      try {
        line = parse_json(row, path(kList));
      } catch (const Error&) {
        if (begin == 0) break;
        continue;  // torn by a crash, and ended by the call after it
      }
      if (begin == 0 && line != identity()) {
        throw Error(ErrorKind::kData, folder_, "holds the pack of another data set, or with other options",
                    "choose another folder, or remove this one");
      }
      if (!is_line_of_shard(line)) continue;
      const size_t shard = line["shard"].get<size_t>();  // before the line moves
      found_[shard] = std::move(line);
    }
    torn_ = begin != text.size();
    if (begin == 0) throw Error(ErrorKind::kData, path(kList), "is damaged", "remove the folder, and pack again");
  }

  // As pack_shard() wrote it; anything else is as good as none.
  bool is_line_of_shard(const Json& line) const {
    const auto is_number = [&](const char* key) { return line.contains(key) && line[key].is_number_unsigned(); };
    const auto is_text = [&](const char* key) { return line.contains(key) && line[key].is_string(); };
    if (!is_number("shard") || !is_number("samples") || !is_number("bytes") || !is_text("file") || !is_text("xxh64")) {
      return false;
    }
    if (!compression_.empty() && (!is_number("raw_bytes") || !is_text("raw_xxh64"))) return false;
    return line["file"] == file_name(line["shard"].get<size_t>()) + (compression_.empty() ? "" : ".zstd");
  }

  bool is_as_listed(const Json& line) const {
    const std::string file = path(line["file"].get<std::string>());
    const std::optional<FileInfo> info = fs_.stat(file);
    return info && info->size == line["bytes"] && xxh64(fs_.read_file(file)) == line["xxh64"];
  }

  void pack_shard(size_t shard) {
    if (stop()) return;
    const auto found = found_.find(shard);
    if (found != found_.end() && is_as_listed(found->second)) {
      finish(shard, found->second, /*kept=*/true);
      return;
    }
    std::vector<PackedSample> samples;
    Scratch scratch;
    for (uint64_t i = begins_[shard]; i < begins_[shard + 1]; ++i) {
      if (stop()) return;
      const std::span<const uint8_t> picture = source_.encoded(i, scratch);
      if (!image::is_jpeg(picture) && !image::is_png(picture)) image::refuse_other_content(picture, scratch.path);
      if (picture.size() != source_.encoded_bytes(i)) {
        throw Error(ErrorKind::kData, scratch.path, "has changed since the data set was opened",
                    "let nothing write to it meanwhile");
      }
      samples.push_back({i, source_.label(i), std::string(picture.begin(), picture.end())});
    }
    std::string bytes = options_.format == "mds" ? make_mds_shard(samples, encoding_, options_.shard_bytes)
                                                 : make_webdataset_shard(samples);
    Json line = {{"shard", shard}, {"file", file_name(shard)}, {"samples", samples.size()}};
    samples = {};
    if (!compression_.empty()) {
      line["raw_bytes"] = bytes.size();
      line["raw_xxh64"] = xxh64(bytes);
      line["file"] = file_name(shard) + ".zstd";
      bytes = zstd(bytes, options_.zstd_level);
    }
    line["bytes"] = bytes.size();
    line["xxh64"] = xxh64(bytes);
    write_file_atomically(fs_, path(line["file"].get<std::string>()), bytes);
    finish(shard, std::move(line), /*kept=*/false);
  }

  void finish(size_t shard, Json line, bool kept) {
    const std::lock_guard lock(mutex_);
    if (kept) {
      ++result_.kept;
    } else {
      list_->append(line.dump() + "\n");
      list_->sync();
    }
    done_ += begins_[shard + 1] - begins_[shard];
    lines_[shard] = std::move(line);
    if (options_.done) options_.done(done_);
  }

  // In the order of the shards, however they were finished.
  void finish_list() {
    list_->close();
    std::string text = identity().dump() + "\n";
    for (const auto& [shard, line] : lines_) text += line.dump() + "\n";
    write_file_atomically(fs_, path(kList), text);
  }

  bool stop() {
    if (options_.stop && options_.stop()) stopped_ = true;
    return stopped_;
  }

  // As mosaicml-streaming 0.13 writes it.
  void write_index() {
    Json index = {{"version", 2}, {"shards", Json::array()}};
    for (const auto& [number, line] : lines_) {
      const auto file = [](const Json& name, const Json& bytes, const Json& hash) {
        return Json{{"basename", name}, {"bytes", bytes}, {"hashes", {{"xxh64", hash}}}};
      };
      Json shard = mds_shard_fields(encoding_, compression_, options_.shard_bytes);
      shard["samples"] = line["samples"];
      const Json own = file(line["file"], line["bytes"], line["xxh64"]);
      shard["raw_data"] = compression_.empty() ? own : file(file_name(number), line["raw_bytes"], line["raw_xxh64"]);
      shard["zip_data"] = compression_.empty() ? Json() : own;
      index["shards"].push_back(std::move(shard));
    }
    write_file_atomically(fs_, path("index.json"), index.dump());
  }

  static constexpr const char* kList = "pack.jsonl";
  static constexpr uint64_t kLargestSample = uint64_t{1} << 31;

  FileSystem& fs_;
  const EncodedPictures& source_;
  const std::string folder_;
  const PackOptions& options_;
  std::string compression_, encoding_;
  std::vector<uint64_t> begins_;  // of each shard, and the end of the last
  std::map<size_t, Json> found_;  // what an earlier call says of shards
  bool torn_ = false;             // the list ends within a line
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;  // of what follows
  std::unique_ptr<WritableFile> list_;
  std::map<size_t, Json> lines_;  // of finished shards
  uint64_t done_ = 0;             // samples
  PackResult result_;
};

}  // namespace

PackResult pack(FileSystem& fs, const Dataset& source, const std::string& destination, const PackOptions& options) {
  if (const EncodedPictures* const pictures = source.encoded_pictures()) {
    return Packer(fs, *pictures, destination, options).run();
  }
  if (has_raw_pictures(source)) {
    return Packer(fs, RawAsPng(source, options.threads, options.stop), destination, options).run();
  }
  throw Error(ErrorKind::kData, source.info().format, "its samples are no pictures, and those are packed",
              "packed are idx, cifar10, imagefolder, webdataset, mds, and jsonl with an image key");
}

}  // namespace skytrain::data
