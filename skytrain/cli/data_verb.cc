#include <algorithm>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/data_source.h"
#include "skytrain/cli/data_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/data/dataset.h"

namespace skytrain::cli {
namespace {

struct VerifyFlags {
  DataFlags data;
  bool json = false;
};

constexpr size_t kMostDamageShown = 20;
// Pixels to which pictures are scaled, which are read only to see that they can be.
constexpr int64_t kCheckedSize = 16;

// Reads each picture; what can't be read is named.
void check_pictures(const data::Dataset& dataset, const std::string& path) {
  const uint64_t samples = dataset.info().samples;
  data::Scratch scratch;
  std::vector<std::string> damage;
  uint64_t damaged = 0;
  for (uint64_t i = 0; i < samples; ++i) {
    if (StopSignal::requests() > 0) throw Error(ErrorKind::kInterrupted, path, str("stopped after ", i, " pictures"));
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
  OrderedJson parts = OrderedJson::object();
  TwoColumns table;
  const auto verify_split = [&](const std::string& split, const data::Dataset& dataset) {
    const std::string unchecked = check_files(dataset, flags.data.path);
    if (dataset.info().elements == data::Elements::kUint8) check_pictures(dataset, flags.data.path);
    parts[split] = info_json(dataset);
    if (!unchecked.empty()) parts[split]["notes"].push_back(unchecked);
    table.row(split, describe(dataset));
    if (!unchecked.empty()) table.row("note", printable(unchecked, 2000));
    for (const std::string& note : dataset.info().notes) table.row("note", printable(note, 2000));
  };
  const std::string format = for_each_split(flags.data, kCheckedSize, verify_split);
  if (flags.json) {
    print_json({{"status", "ok"}, {"path", flags.data.path}, {"format", format}, {"splits", parts}});
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
  add_data_flags(*sub, flags->data);
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return verify(*flags); };
  add_data_inspect(app, actions);
  add_data_pack(app, actions);
  add_data_bench(app, actions);
}

}  // namespace skytrain::cli
