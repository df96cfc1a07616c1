#include <algorithm>
#include <memory>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/data/dataset.h"

namespace skytrain::cli {
namespace {

struct VerifyFlags {
  std::string path;
  std::string format = "idx";
  bool json = false;
};

// More classes than any label of the format can name: verifying checks the files, not whether they fit a model.
constexpr int64_t kAnyClasses = 1'000'000;

// The splits of which at least one file is there. Both when there is none: opening says what is missing.
std::vector<std::string> splits_found(FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  if (!info) {
    throw Error(ErrorKind::kData, path, "there is no such file or folder", "give the folder that holds the data set");
  }
  std::vector<std::string> found;
  if (info->type == FileInfo::Type::kDirectory) {
    const std::vector<std::string> names = fs.list(path);
    const auto any_begins = [&](std::string_view prefix) {
      return std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.rfind(prefix, 0) == 0; });
    };
    if (any_begins("train-")) found.push_back("train");
    if (any_begins("t10k-") || any_begins("test-")) found.push_back("test");
  }
  return found.empty() ? std::vector<std::string>{"train"} : found;
}

OrderedJson info_json(const data::DatasetInfo& info) {
  return {{"samples", info.samples}, {"classes", info.classes}, {"channels", info.channels},
          {"height", info.height},   {"width", info.width},     {"fingerprint", info.fingerprint}};
}

int verify(const VerifyFlags& flags) {
  FileSystem& fs = FileSystem::real();
  if (flags.format != "idx") {
    throw Error(ErrorKind::kUsage, "--format",
                str("there is no format \"", printable(flags.format, 60), "\"", did_you_mean(flags.format, {"idx"})),
                "formats: idx");
  }
  OrderedJson splits = OrderedJson::object();
  for (const std::string& split : splits_found(fs, flags.path)) {
    recipe::DatasetSpec spec;
    spec.path = flags.path;
    spec.format = flags.format;
    spec.split = split;
    const auto dataset = data::open_dataset(fs, spec, kAnyClasses, /*seed=*/0, /*eval=*/split == "test");
    splits[split] = info_json(dataset->info());
  }
  if (flags.json) {
    print_json({{"status", "ok"}, {"path", flags.path}, {"format", flags.format}, {"splits", splits}});
    return 0;
  }
  TwoColumns table;
  for (const auto& [split, info] : splits.items()) {
    table.row(split, str(human_count(info["samples"]), " samples, ", info["classes"].get<int64_t>(), " classes, ",
                         info["channels"].get<int64_t>(), " x ", info["height"].get<int64_t>(), " x ",
                         info["width"].get<int64_t>(), ", fingerprint ", info["fingerprint"].get<std::string>()));
  }
  print_result(table.text());
  return 0;
}

}  // namespace

void add_data(CLI::App& app, Actions& actions) {
  app.require_subcommand(1);
  CLI::App* sub = app.add_subcommand("verify", "Read a data set as training would, and tell what is in it");
  add_help_flag(*sub, "skytrain data verify data/mnist --json");
  auto flags = std::make_shared<VerifyFlags>();
  sub->add_option("PATH", flags->path, "Folder of the data set")->required()->type_name("FOLDER");
  sub->add_option("--format", flags->format, "Format of the data set")->capture_default_str();
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return verify(*flags); };
}

}  // namespace skytrain::cli
