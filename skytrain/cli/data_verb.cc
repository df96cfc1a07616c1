#include <algorithm>
#include <memory>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/data_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/data/csv_reader.h"
#include "skytrain/data/dataset.h"
#include "skytrain/data/guess_format.h"

namespace skytrain::cli {
namespace {

struct VerifyFlags {
  std::string path;
  std::string format = "auto";
  std::vector<std::string> target;
  bool json = false;
};

constexpr size_t kMostDamageShown = 20;
constexpr int64_t kCheckedSize =
    16;  // pixels to which pictures are scaled, which are read only to see that they can be

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
  const std::string format = data::guess_format(fs, path);
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

std::unique_ptr<data::Dataset> open_csv(const FileSystem& fs, const recipe::DatasetSpec& spec) {
  if (spec.target.empty()) {
    data::CsvReader reader(fs, spec.path);
    std::vector<std::string> columns;
    if (reader.next()) {
      for (const auto& field : reader.fields()) columns.emplace_back(printable(field.text, 60));
    }
    throw Error(ErrorKind::kUsage, "--target", "format csv needs it: the column of the class, or those of the values",
                "the first line of " + spec.path + ": " + join(columns, ", "));
  }
  data::OpenOptions options;
  if (spec.target.size() > 1) options.target = data::TargetKind::kValues;
  try {
    return data::open_dataset(fs, spec, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData || spec.target.size() > 1) throw;
    // One column may be of a class or of a value.
    options.target = data::TargetKind::kValues;
    try {
      return data::open_dataset(fs, spec, options);
    } catch (const Error&) {
      throw error;
    }
  }
}

// Reads each picture; what can't be read is named.
void check_pictures(const data::Dataset& dataset, const std::string& path) {
  const uint64_t samples = dataset.info().samples;
  data::Scratch scratch;
  std::vector<std::string> damage;
  uint64_t damaged = 0;
  for (uint64_t i = 0; i < samples; ++i) {
    try {
      dataset.pixels(i, scratch);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      if (damage.size() < kMostDamageShown) damage.push_back(error.where() + ": " + error.problem());
      ++damaged;
    }
  }
  if (damaged == 0) return;
  if (damaged > damage.size()) damage.push_back(str("and ", damaged - damage.size(), " more"));
  throw Error(ErrorKind::kData, path, str(damaged, " of ", samples, " pictures can't be used"), join(damage, "\n"));
}

// Of sets that carry checksums. Returns what could not be checked, "" when nothing was left out.
std::string check_files(const data::Dataset& dataset, const std::string& path) {
  data::FileCheck check = dataset.check_files();
  if (!check.damage.empty()) {
    const size_t damaged = check.damage.size();
    if (damaged > kMostDamageShown) {
      check.damage.resize(kMostDamageShown);
      check.damage.push_back(str("and ", damaged - kMostDamageShown, " more"));
    }
    throw Error(ErrorKind::kData, path, str(damaged, " of ", check.files, " files differ from their checksums"),
                join(check.damage, "\n"));
  }
  return check.unknown.empty() ? "" : "checksums of these kinds were not compared: " + join(check.unknown, ", ");
}

OrderedJson info_json(const data::Dataset& dataset) {
  const data::DatasetInfo& info = dataset.info();
  OrderedJson json = {{"samples", info.samples}};
  if (info.values == 0) json["classes"] = info.classes;
  if (info.values > 0) json["values"] = info.values;
  if (!info.class_names.empty()) json["class_names"] = info.class_names;
  if (info.elements == data::Elements::kFloat32) {
    json["features"] = info.channels;
    json["feature_names"] = info.feature_names;
  } else if (dataset.encoded_pictures() == nullptr) {  // whose pictures are scaled to what a recipe asks for
    json["channels"] = info.channels;
    json["height"] = info.height;
    json["width"] = info.width;
  }
  json["fingerprint"] = info.fingerprint;
  if (!info.notes.empty()) json["notes"] = info.notes;
  return json;
}

std::string counted(int64_t count, const char* one, const char* many) {
  return str(human_count(static_cast<double>(count)), " ", count == 1 ? one : many);
}

std::string describe(const data::Dataset& dataset) {
  const data::DatasetInfo& info = dataset.info();
  std::string text = counted(static_cast<int64_t>(info.samples), "sample", "samples");
  if (info.elements == data::Elements::kFloat32) text += ", " + counted(info.channels, "feature", "features");
  if (info.values > 0) text += ", " + counted(info.values, "value to predict", "values to predict");
  if (info.values == 0) text += ", " + counted(info.classes, "class", "classes");
  if (!info.class_names.empty()) {
    constexpr size_t kShown = 10;
    const size_t shown = std::min(kShown, info.class_names.size());
    text += " (" + join({info.class_names.begin(), info.class_names.begin() + static_cast<ptrdiff_t>(shown)}, ", ") +
            (info.class_names.size() > shown ? ", …)" : ")");
  }
  if (info.elements == data::Elements::kUint8 && dataset.encoded_pictures() == nullptr) {
    text += str(", ", info.channels, " x ", info.height, " x ", info.width);
  }
  return text + ", fingerprint " + info.fingerprint;
}

int verify(const VerifyFlags& flags) {
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
  spec.size = kCheckedSize;
  if (!spec.target.empty() && spec.format != "csv") {
    throw Error(ErrorKind::kUsage, "--target", "is for format csv, and this is " + spec.format);
  }

  OrderedJson parts = OrderedJson::object();
  TwoColumns table;
  const bool splits = spec.format == "idx" || spec.format == "cifar10";
  for (const std::string& part : splits ? splits_found(fs, flags.path, spec.format) : std::vector<std::string>{"all"}) {
    spec.split = part;
    const auto dataset = spec.format == "csv" ? open_csv(fs, spec) : data::open_dataset(fs, spec, {});
    const std::string unchecked = check_files(*dataset, flags.path);
    if (dataset->info().elements == data::Elements::kUint8) check_pictures(*dataset, flags.path);
    parts[part] = info_json(*dataset);
    if (!unchecked.empty()) parts[part]["notes"].push_back(unchecked);
    table.row(part, describe(*dataset));
    if (!unchecked.empty()) table.row("note", printable(unchecked, 2000));
    for (const std::string& note : dataset->info().notes) table.row("note", printable(note, 2000));
  }
  if (flags.json) {
    print_json({{"status", "ok"}, {"path", flags.path}, {"format", spec.format}, {"splits", parts}});
  } else {
    print_result(table.text());
  }
  return 0;
}

}  // namespace

void add_data(CLI::App& app, Actions& actions) {
  app.require_subcommand(1);
  CLI::App* sub = app.add_subcommand("verify", "Read a data set as training would, and tell what is in it");
  add_help_flag(*sub, "skytrain data verify data/mnist --json");
  auto flags = std::make_shared<VerifyFlags>();
  sub->add_option("PATH", flags->path, "Folder, or file, of the data set")->required()->type_name("PATH");
  sub->add_option("--format", flags->format, "Format of the data set: " + join(file_formats(), ", ") + "; auto: guess")
      ->capture_default_str();
  sub->add_option("--target", flags->target, "csv: column of the class, or of a value (may be repeated)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("COLUMN");
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return verify(*flags); };
  add_data_bench(app, actions);
}

}  // namespace skytrain::cli
