// `skytrain data inspect`.

#include <algorithm>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/progress.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/data_source.h"
#include "skytrain/cli/data_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/output_file.h"
#include "skytrain/data/contact_sheet.h"
#include "skytrain/data/inspection.h"
#include "skytrain/data/raw_as_png.h"

namespace skytrain::cli {
namespace {

struct InspectFlags {
  DataFlags data;
  std::string sheet;  // "": none
  bool json = false;
};

constexpr std::string_view kPng = ".png";
constexpr size_t kShown = 20;  // of classes, broken files and duplicates, for people

std::string count_of(uint64_t count) { return human_count(static_cast<double>(count)); }

std::string class_name(const data::DatasetInfo& info, size_t label) {
  return info.class_names.empty() ? std::to_string(label) : info.class_names[label];
}

OrderedJson spread_json(const data::Spread& spread) {
  return {{"min", spread.least}, {"median", spread.median}, {"max", spread.most}};
}

OrderedJson inspection_json(const data::Dataset& dataset, const data::Inspection& found) {
  const data::DatasetInfo& info = dataset.info();
  OrderedJson json = {{"samples", info.samples}};
  if (info.values == 0) {
    OrderedJson classes = OrderedJson::array();
    for (size_t label = 0; label < found.per_class.size(); ++label) {
      classes.push_back({{"label", label}, {"name", class_name(info, label)}, {"samples", found.per_class[label]}});
    }
    json["classes"] = std::move(classes);
  }
  if (dataset.encoded_pictures() != nullptr) {
    json["kinds"] = {{"jpeg", found.jpeg}, {"png", found.png}};
    json["width"] = spread_json(found.width);
    json["height"] = spread_json(found.height);
    json["bytes"] = spread_json(found.bytes);
    OrderedJson broken = OrderedJson::array(), duplicates = OrderedJson::array();
    for (const auto& one : found.broken) broken.push_back({{"name", one.name}, {"problem", one.problem}});
    for (const std::vector<uint64_t>& group : found.duplicates) {
      OrderedJson names = OrderedJson::array();
      for (const uint64_t i : group) names.push_back(dataset.name(i));
      duplicates.push_back(std::move(names));
    }
    json["broken"] = std::move(broken);
    json["duplicates"] = std::move(duplicates);
    json["contradictions"] = found.contradictions;
  }
  if (!info.notes.empty()) json["notes"] = info.notes;
  json["fingerprint"] = info.fingerprint;
  return json;
}

std::string spread_text(const data::Spread& spread, bool bytes) {
  const auto text = [&](uint64_t n) { return bytes ? human_bytes(static_cast<double>(n)) : count_of(n); };
  return str(text(spread.least), " to ", text(spread.most), ", median ", text(spread.median));
}

void add_classes(const data::DatasetInfo& info, const std::vector<uint64_t>& per_class, TwoColumns& table) {
  if (per_class.empty()) return;
  const auto [least, most] = std::minmax_element(per_class.begin(), per_class.end());
  table.row("classes", str(count_of(per_class.size()), ", of ", count_of(*least), " to ", count_of(*most), " samples"));
  for (size_t label = 0; label < std::min(kShown, per_class.size()); ++label) {
    table.row("  " + printable(class_name(info, label), 40),
              str(count_of(per_class[label]), formatted("  %.1f %%", 100.0 * static_cast<double>(per_class[label]) /
                                                                         static_cast<double>(info.samples))));
  }
  if (per_class.size() > kShown) table.row("  …", str("and ", per_class.size() - kShown, " more: --json lists them"));
}

void add_pictures(const data::Dataset& dataset, const data::Inspection& found, TwoColumns& table) {
  table.row("kinds", str(count_of(found.jpeg), " JPEG, ", count_of(found.png), " PNG"));
  table.row("width", spread_text(found.width, false));
  table.row("height", spread_text(found.height, false));
  table.row("file size", spread_text(found.bytes, true));
  table.row("broken", count_of(found.broken.size()));
  for (size_t i = 0; i < std::min(kShown, found.broken.size()); ++i) {
    table.row("", printable(found.broken[i].name) + ": " + printable(found.broken[i].problem));
  }
  table.row("duplicates", str(count_of(found.duplicates.size()),
                              found.duplicates.size() == 1 ? " group of equal files, " : " groups of equal files, ",
                              count_of(found.contradictions), " of them in several classes"));
  for (size_t i = 0; i < std::min(kShown, found.duplicates.size()); ++i) {
    const std::vector<uint64_t>& group = found.duplicates[i];
    std::string names;
    for (size_t k = 0; k < std::min<size_t>(3, group.size()); ++k)
      names += (k > 0 ? ", " : "") + dataset.name(group[k]);
    if (group.size() > 3) names += str(" and ", group.size() - 3, " more");
    table.row("", printable(names, 600));
  }
  if (std::max(found.broken.size(), found.duplicates.size()) > kShown) table.row("", "…: --json lists all");
}

// "a.png", or "a-train.png" for one of several splits.
std::string sheet_name(const std::string& name, const std::string& split) {
  return split == "all" ? name : name.substr(0, name.size() - kPng.size()) + "-" + split + std::string(kPng);
}

// What stands in the rows of a sheet, for people.
std::string rows_text(const data::DatasetInfo& info, const std::vector<int64_t>& labels) {
  std::vector<std::string> names;
  names.reserve(labels.size());
  for (const int64_t label : labels) names.push_back(printable(class_name(info, static_cast<size_t>(label)), 40));
  return join(names, ", ") + (labels.size() == data::kSheetRows ? ", and no more: a sheet has so many rows" : "");
}

int inspect(const InspectFlags& flags) {
  OrderedJson parts = OrderedJson::object();
  TwoColumns table;
  FileSystem& fs = FileSystem::real();
  if (!flags.sheet.empty() && !flags.sheet.ends_with(kPng))
    throw Error(ErrorKind::kUsage, "--sheet", "\"" + printable(flags.sheet) + "\" does not end in .png");
  const std::string format =
      for_each_split(flags.data, /*size=*/1, [&](const std::string& split, const data::Dataset& dataset) {
        const bool pictures = dataset.encoded_pictures() != nullptr;
        std::string file;
        if (!flags.sheet.empty()) {
          if (!pictures && !data::has_raw_pictures(dataset))
            throw Error(ErrorKind::kUsage, "--sheet", flags.data.path + " holds no pictures", "leave it out");
          file = output_file(fs, sheet_name(flags.sheet, split), "--sheet");
        }
        Progress progress(detect_terminal());
        if (pictures) progress.start("inspect", 0, dataset.info().samples);
        const data::Inspection found = data::inspect(
            dataset, [&](uint64_t done) { progress.update(done, ""); }, [] { return StopSignal::requests() > 0; });
        if (pictures) progress.finish();
        data::ContactSheet sheet;
        if (!file.empty()) {
          sheet = data::make_contact_sheet(dataset, found);
          write_file_atomically(fs, file, sheet.png);
        }
        if (flags.json) {
          parts[split] = inspection_json(dataset, found);
          if (!file.empty()) parts[split]["sheet"] = {{"file", file}, {"labels", sheet.labels}};
          return;
        }
        table.row(split, count_of(dataset.info().samples) + " samples");
        add_classes(dataset.info(), found.per_class, table);
        if (pictures) add_pictures(dataset, found, table);
        if (!file.empty()) {
          table.row("sheet", file);
          table.row("its rows", rows_text(dataset.info(), sheet.labels));
        }
        for (const std::string& note : dataset.info().notes) table.row("note", printable(note, 2000));
      });
  if (flags.json) {
    print_json({{"status", "ok"}, {"path", flags.data.path}, {"format", format}, {"splits", parts}});
  } else {
    print_result(table.text());
  }
  return 0;
}

}  // namespace

void add_data_inspect(CLI::App& app, Actions& actions) {
  CLI::App* sub = app.add_subcommand("inspect", "Tell classes, sizes, broken files and duplicates of a data set");
  add_help_flag(*sub, "skytrain data inspect flowers/train --json");
  auto flags = std::make_shared<InspectFlags>();
  add_data_flags(*sub, flags->data);
  sub->add_option("--sheet", flags->sheet,
                  "Draw some pictures of each class on a sheet, a PNG file: a class a row, broken pictures in red")
      ->type_name("FILE.png");
  add_exif_flag(*sub, flags->data);
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return inspect(*flags); };
}

}  // namespace skytrain::cli
