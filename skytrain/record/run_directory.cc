#include "skytrain/record/run_directory.h"

#include <algorithm>
#include <charconv>

#include "skytrain/base/error.h"
#include "skytrain/base/run_name.h"
#include "skytrain/base/text.h"

namespace skytrain::record {

namespace {

void check_name(const std::string& name) {
  if (const std::string why = refuse_run_name(name); !why.empty()) {
    throw Error(ErrorKind::kRecipe, "name", str("\"", printable(name), "\" ", why),
                str("a run's name: ", kRunNameRule));
  }
}

std::string pretty(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

// Order of creation: the UTC time (it sorts as text), then the number.
struct Stamp {
  std::string time;
  uint64_t number = 1;
  bool operator<(const Stamp& other) const { return time != other.time ? time < other.time : number < other.number; }
};

// "20261130T135007Z" or "20261130T135007Z-12".
std::optional<Stamp> parse_stamp(const std::string& name) {
  constexpr std::string_view kPattern = "ddddddddTddddddZ";
  if (name.size() < kPattern.size()) return std::nullopt;
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const bool fits = kPattern[i] == 'd' ? (name[i] >= '0' && name[i] <= '9') : name[i] == kPattern[i];
    if (!fits) return std::nullopt;
  }
  Stamp stamp{name.substr(0, kPattern.size())};
  if (name.size() == kPattern.size()) return stamp;
  const char* const begin = name.data() + kPattern.size() + 1;
  const char* const end = name.data() + name.size();
  if (name[kPattern.size()] != '-') return std::nullopt;
  const auto [rest, problem] = std::from_chars(begin, end, stamp.number);
  if (problem != std::errc{} || rest != end) return std::nullopt;
  return stamp;
}

}  // namespace

RunDirectory RunDirectory::create(FileSystem& fs, const Clock& clock, const std::string& runs, const std::string& name,
                                  const std::string& recipe_yaml, const OrderedJson& recipe_json,
                                  const OrderedJson& run_json, const Claim& claim) {
  check_name(name);
  const std::string family = runs + "/" + name;
  fs.make_directories(family);
  const std::string stamp = family + "/" + format_utc(clock.unix_seconds(), /*compact=*/true);
  std::string path = stamp;
  for (int number = 2; !fs.make_directory(path); ++number) path = str(stamp, "-", number);
  fs.sync_directory(family);

  RunDirectory run(path);
  if (claim) claim(run);
  write_file_atomically(fs, run.recipe_yaml(), recipe_yaml);
  write_file_atomically(fs, run.recipe_json(), pretty(recipe_json));
  write_file_atomically(fs, run.run_json(), pretty(run_json));
  return run;
}

void add_attempt(FileSystem& fs, const RunDirectory& run, const OrderedJson& attempt) {
  const std::string text = fs.read_file(run.run_json());
  parse_json(text, run.run_json());  // the same refusals for every reader; the second parse keeps the keys' order
  OrderedJson json = OrderedJson::parse(text);
  if (!json.is_object() || (json.contains("attempts") && !json["attempts"].is_array())) {
    throw Error(ErrorKind::kData, run.run_json(), "is not an object with a list \"attempts\"",
                "SkyTrain did not write it; restore it, or start a new run");
  }
  json["attempts"].push_back(attempt);
  write_file_atomically(fs, run.run_json(), pretty(json));
}

std::vector<RunDirectory> find_runs(const FileSystem& fs, const std::string& runs, const std::string& name,
                                    std::vector<std::string>* notes) {
  check_name(name);
  const auto note = [&](const std::string& line) {
    if (notes) notes->push_back(line);
  };
  std::vector<std::pair<Stamp, RunDirectory>> found;
  const std::string family = runs + "/" + name;
  const auto info = fs.stat(family);
  if (!info || info->type != FileInfo::Type::kDirectory) return {};
  for (const std::string& entry : fs.list(family)) {
    RunDirectory run(family + "/" + entry);
    const auto entry_info = fs.stat(run.path());
    if (!entry_info || entry_info->type != FileInfo::Type::kDirectory) continue;
    const auto stamp = parse_stamp(entry);
    if (!stamp) {
      note(run.path() + ": passed over: its name is not a run's UTC time");
      continue;
    }
    try {
      if (!fs.exists(run.run_json())) {
        note(run.path() + ": passed over: it has no run.json");
        continue;
      }
      parse_json(fs.read_file(run.run_json()), run.run_json());
    } catch (const Error& error) {
      note(run.path() + ": passed over: " + error.message());
      continue;
    }
    found.emplace_back(*stamp, std::move(run));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return b.first < a.first; });
  std::vector<RunDirectory> newest_first;
  newest_first.reserve(found.size());
  for (auto& [stamp, run] : found) newest_first.push_back(std::move(run));
  return newest_first;
}

}  // namespace skytrain::record
