#include "skytrain/data/webdataset_index.h"

#include <algorithm>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/label_column.h"
#include "skytrain/data/tar.h"
#include "skytrain/data/webdataset_names.h"

namespace skytrain::data {
namespace {

constexpr size_t kMostPassedOver = 20;
constexpr size_t kLongestLabel = 64;  // bytes of a .cls
constexpr int64_t kHighestLabel = static_cast<int64_t>(LabelColumn::kMostClasses) - 1;

class Indexer {
 public:
  Indexer(const FileSystem& fs, const std::string& path, uint64_t size, int64_t classes)
      : tar_(fs, path, size), path_(path), classes_(classes) {
    shard_.path = path;
  }

  WebdatasetShard run() {
    uint64_t offset = 0;
    while (const std::optional<TarMember> member = read_tar_member(tar_, offset, path_)) {
      add(*member);
      offset = member->next;
    }
    check_tar_end(tar_, offset, path_);
    finish_sample();
    shard_.hash = hash_.hex();
    shard_.samples.shrink_to_fit();
    return std::move(shard_);
  }

 private:
  void add(const TarMember& member) {
    if (member.type == TarMember::Type::kOther) return;
    std::optional<WebdatasetName> name;
    if (!is_webdataset_meta(member.name)) name = split_webdataset_name(member.name);
    if (!name) {
      if (shard_.passed_over.size() < kMostPassedOver) shard_.passed_over.push_back(member.name);
      return;
    }
    if (member.type == TarMember::Type::kLink) {
      // webdataset passes links over, and the sample with them.
      refuse(str(printable(member.name), " is a link, not a file"), "make the archive with tar -h --hard-dereference");
    }
    if (fields_.empty() || name->key != key_) {
      finish_sample();
      key_ = name->key;
      first_member_ = member.name;
    }
    if (std::find(fields_.begin(), fields_.end(), name->field) != fields_.end()) {
      refuse(str("sample ", quoted(key_), " has field ", quoted(name->field), " twice, the second time as ",
                 printable(member.name)),
             "a sample's files share the name up to the first dot: rename those of other samples");
    }
    if (is_picture_field(name->field)) {
      picture_ = member;
      ++pictures_;
    } else if (name->field == "cls") {
      label_ = read_label(member);
    }
    fields_.push_back(std::move(name->field));
  }

  void finish_sample() {
    if (fields_.empty()) return;
    if (pictures_ != 1 || !label_) {
      std::vector<std::string> fields;
      for (const std::string& field : fields_) fields.push_back(printable(field, 60));
      const std::string what = pictures_ == 0   ? "no picture (jpg, jpeg, png)"
                               : pictures_ == 1 ? "no class (cls)"
                                                : str(pictures_, " pictures");
      refuse(str("sample ", quoted(key_), " has ", what, "; its fields are ", first_names(std::move(fields))),
             str("its first file is ", printable(first_member_),
                 ": all that follows the first dot of a name is the field, and files of a sample lie together"));
    }
    if (picture_.data / kTarBlock > UINT32_MAX || picture_.size > UINT32_MAX) {
      refuse("has 2 TiB or more, or a picture of 4 GiB or more", "make smaller shards");
    }
    hash_.text(key_);
    hash_.number(picture_.size);
    hash_.number(static_cast<uint64_t>(*label_));
    shard_.samples.push_back({static_cast<uint32_t>(picture_.start / kTarBlock),
                              static_cast<uint32_t>(picture_.data / kTarBlock), static_cast<uint32_t>(picture_.size),
                              static_cast<int32_t>(*label_)});
    fields_.clear();
    label_.reset();
    pictures_ = 0;
  }

  int64_t read_label(const TarMember& member) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(member.size, kLongestLabel));
    const std::span<const uint8_t> bytes = tar_.bytes(member.data, size);
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string_view digits = content;
    constexpr std::string_view kBlanks = " \t\r\n";
    digits.remove_prefix(std::min(digits.find_first_not_of(kBlanks), digits.size()));
    digits = digits.substr(0, digits.find_last_not_of(kBlanks) + 1);
    int64_t label = digits.empty() || size < member.size ? -1 : 0;
    for (const char c : digits) {
      label = label < 0 || c < '0' || c > '9' ? -1 : 10 * label + (c - '0');
      if (label > kHighestLabel) label = -1;
    }
    if (label < 0) {
      refuse(str(printable(member.name), " holds ", quoted(std::string(content)), ", no class"),
             "a class is a whole number from 0, as text");
    }
    if (classes_ > 0 && label >= classes_) {
      refuse(str(printable(member.name), " holds class ", label, ", the model has ", classes_,
                 classes_ == 1 ? " output" : " outputs"),
             "classes are numbered from 0; set model.classes, or correct the shard");
    }
    return label;
  }

  static std::string quoted(const std::string& text) { return str("\"", printable(text), "\""); }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Error(ErrorKind::kData, path_, what, hint);
  }

  FileSource tar_;
  const std::string& path_;
  const int64_t classes_;
  WebdatasetShard shard_;
  FingerprintHash hash_;
  // The sample that is being read; none when it has no fields.
  std::string key_, first_member_;
  std::vector<std::string> fields_;
  TarMember picture_;
  int pictures_ = 0;
  std::optional<int64_t> label_;
};

}  // namespace

bool is_picture_field(const std::string& field) { return field == "jpg" || field == "jpeg" || field == "png"; }

WebdatasetShard index_webdataset_shard(const FileSystem& fs, const std::string& path, int64_t classes) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) throw Error(ErrorKind::kData, path, "is gone");
  if (info->type != FileInfo::Type::kFile) throw Error(ErrorKind::kData, path, "is no file, expected a tar archive");
  return Indexer(fs, path, info->size, classes).run();
}

}  // namespace skytrain::data
