#include "skytrain/cli/data_source.h"

#include <algorithm>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/csv_reader.h"
#include "skytrain/data/guess_format.h"
#include "skytrain/data/jsonl_reader.h"

namespace skytrain::cli {
namespace {

// Formats that are files: synthetic data needs no looking at.
std::vector<std::string> file_formats() {
  std::vector<std::string> formats = data::dataset_formats();
  std::erase(formats, "synthetic");
  return formats;
}

bool any_begins(const std::vector<std::string>& names, std::string_view prefix) {
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); });
}

// idx when a folder holds nothing telling: opening it says what is missing.
std::string format_of(const FileSystem& fs, const std::string& path, bool folder) {
  std::string format = data::guess_format(fs, path);
  if (!format.empty()) return format;
  if (folder) return "idx";
  throw Error(ErrorKind::kData, path, "its name does not tell the format of the data set",
              "give the folder of the data set, or --format: " + join(file_formats(), ", "));
}

// The splits of which at least one file is there; train when there is none: opening says what is missing.
std::vector<std::string> splits_found(const FileSystem& fs, const std::string& path, const std::string& format) {
  std::vector<std::string> names;
  const std::optional<FileInfo> info = fs.stat(path);
  if (info && info->type == FileInfo::Type::kDirectory) names = fs.list(path);
  if (format == "cifar10" && fs.exists(path + "/cifar-10-batches-bin")) names = fs.list(path + "/cifar-10-batches-bin");
  std::vector<std::string> found;
  if (any_begins(names, format == "idx" ? "train-" : "data_batch_")) found.emplace_back("train");
  if (any_begins(names, format == "idx" ? "t10k-" : "test_batch")) found.emplace_back("test");
  return found.empty() ? std::vector<std::string>{"train"} : found;
}

// csv or jsonl.
bool is_table(const std::string& format) { return format == "csv" || format == "jsonl"; }

// What a first line offers as targets.
std::string columns_of(const FileSystem& fs, const recipe::DatasetSpec& spec) {
  std::vector<std::string> columns;
  if (spec.format == "jsonl") {
    data::JsonlReader reader(fs, spec.path);
    if (reader.next()) columns = reader.keys();
  } else {
    data::CsvReader reader(fs, spec.path);
    if (reader.next()) {
      for (const auto& field : reader.fields()) columns.emplace_back(field.text);
    }
  }
  for (std::string& column : columns) column = printable(column, 60);
  return "the first line of " + spec.path + ": " + join(columns, ", ");
}

std::unique_ptr<data::Dataset> open_table(const FileSystem& fs, const recipe::DatasetSpec& spec) {
  if (spec.target.empty()) {
    const bool jsonl = spec.format == "jsonl";
    throw Error(ErrorKind::kUsage, "--target",
                jsonl ? "format jsonl needs it: the key of the class, or those of the values; and --image where lines "
                        "name pictures"
                      : "format csv needs it: the column of the class, or those of the values",
                columns_of(fs, spec));
  }
  data::OpenOptions options;
  if (spec.target.size() > 1) options.target = data::TargetKind::kValues;
  try {
    return data::open_dataset(fs, spec, options);
  } catch (const Error& error) {
    const bool unfit = error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kRecipe;
    if (!unfit || spec.target.size() > 1 || spec.image) throw;
    // One column may be of a class or of a value, and hold an array of values.
    options.target = data::TargetKind::kValues;
    try {
      return data::open_dataset(fs, spec, options);
    } catch (const Error&) {
      throw error;
    }
  }
}

}  // namespace

void add_data_flags(CLI::App& app, DataFlags& flags, const char* format_flag) {
  app.add_option("PATH", flags.path, "Folder, or file, of the data set")->required()->type_name("PATH");
  app.add_option(format_flag, flags.format, "Format of the data set: " + join(file_formats(), ", ") + "; auto: guess")
      ->capture_default_str();
  app.add_option("--target", flags.target, "csv, jsonl: column, or key, of the class or of a value (may be repeated)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("COLUMN");
  app.add_option("--image", flags.image, "jsonl: key of the picture's file; without it, lines hold numbers")
      ->type_name("KEY");
}

void add_exif_flag(CLI::App& app, DataFlags& flags) {
  app.add_flag("--exif-orientation", flags.exif_orientation, "Turn pictures upright, as their Exif says");
}

std::string for_each_split(const DataFlags& flags, int64_t size,
                           const std::function<void(const std::string&, const data::Dataset&)>& use,
                           const data::OpenOptions& options) {
  const FileSystem& fs = FileSystem::real();
  const std::vector<std::string> formats = file_formats();
  if (flags.format != "auto" && std::find(formats.begin(), formats.end(), flags.format) == formats.end()) {
    throw Error(ErrorKind::kUsage, "--format",
                str("there is no format \"", printable(flags.format, 60), "\"", did_you_mean(flags.format, formats)),
                "formats: " + join(formats, ", "));
  }
  const std::optional<FileInfo> found = fs.stat(flags.path);
  if (!found && flags.path.find('{') == std::string::npos) {  // a pattern of shards
    throw Error(ErrorKind::kData, flags.path, "there is no such file or folder",
                "give the folder that holds the data set");
  }
  recipe::DatasetSpec spec;
  spec.path = flags.path;
  spec.format = flags.format == "auto" ? format_of(fs, flags.path, found && found->type == FileInfo::Type::kDirectory)
                                       : flags.format;
  spec.target = flags.target;
  spec.size = size;
  spec.exif_orientation = flags.exif_orientation;
  if (!flags.image.empty()) spec.image = flags.image;
  if (!spec.target.empty() && !is_table(spec.format)) {
    throw Error(ErrorKind::kUsage, "--target", "is for formats csv and jsonl, and this is " + spec.format);
  }
  if (spec.image && spec.format != "jsonl") {
    throw Error(ErrorKind::kUsage, "--image", "is for format jsonl, and this is " + spec.format);
  }
  const bool splits = spec.format == "idx" || spec.format == "cifar10";
  for (const std::string& split :
       splits ? splits_found(fs, flags.path, spec.format) : std::vector<std::string>{"all"}) {
    spec.split = split;
    use(split, is_table(spec.format) ? *open_table(fs, spec) : *data::open_dataset(fs, spec, options));
  }
  return spec.format;
}

}  // namespace skytrain::cli
