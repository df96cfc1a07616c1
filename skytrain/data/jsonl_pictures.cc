#include "skytrain/data/jsonl_pictures.h"

#include <optional>
#include <string_view>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/class_names.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/jsonl_fields.h"
#include "skytrain/data/jsonl_reader.h"
#include "skytrain/data/label_column.h"
#include "skytrain/data/table_columns.h"

namespace skytrain::data {
namespace {

using Field = JsonlReader::Field;

// Of Linux.
constexpr size_t kLongestPath = 4096, kLongestPart = 255;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// What is wrong with a file's name, or "".
std::string_view problem_of(std::string_view name) {
  if (name.empty()) return "names no file: it is empty";
  if (name.front() == '/') return "names a file by an absolute path";
  if (name.find('\0') != std::string_view::npos) return "names a file with a NUL character";
  if (name.size() >= kLongestPath) return "names a file by too long a path";
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    // Where a link stands before it, ".." leads to another place than it seems.
    if (name.substr(begin, end - begin) == "..") return "leads out of the folder, or may do so: it has \"..\"";
    if (end - begin > kLongestPart) return "names a file by too long a path";
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::unique_ptr<JsonlPictures> JsonlPictures::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                                   const OpenOptions& options) {
  return std::unique_ptr<JsonlPictures>(new JsonlPictures(fs, spec, options));
}

JsonlPictures::JsonlPictures(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options)
    : EncodedPictures(spec, options), fs_(fs), folder_(folder_of(spec.path)) {
  const std::string where = options.eval ? "data.eval" : "data.train";
  if (spec.target.size() != 1) {
    throw Error(ErrorKind::kRecipe, where + ".target",
                str("names ", spec.target.size(), " keys, but pictures have one: the class"));
  }
  if (*spec.image == spec.target.front()) {
    throw Error(ErrorKind::kRecipe, where + ".target", "is the key of the picture's file", "name that of its class");
  }
  info_.format = "jsonl";
  info_.channels = 3;
  info_.height = info_.width = size();
  read(spec, options);
  if (!info_.class_names.empty()) check_class_count(info_, options, spec.path);
  info_.samples = files_.files();
  info_.bytes_in_memory = files_.bytes_in_memory() + 4 * labels_.capacity();
  info_.fingerprint = make_fingerprint();
}

void JsonlPictures::read(const recipe::DatasetSpec& spec, const OpenOptions& options) {
  const std::string &image = *spec.image, &target = spec.target.front();
  JsonlReader reader(fs_, spec.path);
  LabelColumn labels(str("key \"", printable(target), "\""));
  size_t image_at = 0, target_at = 1;
  std::string path;
  while (reader.next()) {
    const Field& file = need_field(reader, image, image_at);
    if (file.kind != JsonlReader::Kind::kText) refuse_field(reader, file, "the name of a picture's file", "");
    const auto refuse = [&](std::string_view what, const std::string& hint) {
      throw Error(ErrorKind::kData, reader.where(file),
                  str("key \"", printable(image), "\" ", what, ": ", printable(file.text)), hint);
    };
    if (const std::string_view problem = problem_of(file.text); !problem.empty()) {
      refuse(problem, "files are named relative to the folder of " + spec.path);
    }
    path.assign(folder_).append("/").append(file.text);
    const std::optional<FileInfo> info = fs_.stat(path);
    if (!info) refuse("names a file that is not there", "looked for " + path);
    if (info->type != FileInfo::Type::kFile) refuse("names what is no file", "looked at " + path);
    files_.add(file.text, info->size);
    add_label(reader, need_field(reader, target, target_at), labels);
  }
  if (files_.files() == 0) throw Error(ErrorKind::kData, spec.path, "holds no line", "expected a JSONL file");
  LabelColumn::Result result = labels.finish(options);
  labels_ = std::move(result.labels);
  info_.classes = result.classes;
  info_.class_names = std::move(result.class_names);
}

std::string JsonlPictures::make_fingerprint() const {
  FingerprintHash hash;
  hash.text("jsonl");
  hash.text("pictures");
  hash.number(info_.class_names.size());
  for (const std::string& name : info_.class_names) hash.text(name);
  hash.number(info_.samples);
  for (uint64_t i = 0; i < info_.samples; ++i) {
    hash.text(files_.name(i));
    hash.number(files_.size(i));
    hash.number(static_cast<uint64_t>(label(i)));
  }
  return hash.hex();
}

std::string JsonlPictures::name(uint64_t index) const { return printable(files_.name(index), kLongestPath); }

std::span<const uint8_t> JsonlPictures::encoded(uint64_t index, Scratch& scratch) const {
  return files_.read(fs_, folder_, index, scratch);
}

}  // namespace skytrain::data
