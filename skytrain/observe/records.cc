#include "skytrain/observe/records.h"

#include <cmath>
#include <limits>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::observe {

namespace {

using record::MetricsLine;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// With U+FFFD for what is not UTF-8: names of files may hold any byte.
std::string valid_utf8(const std::string& text) {
  const std::string quoted = OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return OrderedJson::parse(quoted).get<std::string>();
}

OrderedJson load_object(const FileSystem& fs, const std::string& path, std::vector<std::string>& notes) {
  if (!fs.exists(path)) return nullptr;
  const std::string raw = fs.read_file(path);
  const std::string text = valid_utf8(raw);
  if (text != raw) notes.push_back(path + ": holds bytes that are not UTF-8; they are shown as \xef\xbf\xbd");
  parse_json(text, path);  // refuses what OrderedJson::parse takes: depth, double keys
  OrderedJson json = OrderedJson::parse(text);
  if (!json.is_object()) throw Error(ErrorKind::kData, path, "is not a JSON object");
  return json;
}

// Runs `load`; what can't be read becomes a note, and the value stays as it was.
template <class Value, class Load>
void try_load(Value& value, std::vector<std::string>& notes, Load load) {
  try {
    value = load();
  } catch (const Error& error) {
    notes.push_back(error.message());
  }
}

void note_membership(MetricsHistory& history, const MetricsLine& line) {
  auto& all = history.memberships;
  if (std::isnan(line.world)) return;
  const double generation = std::isnan(line.generation) ? 0 : line.generation;
  if (all.empty() || all.back().world != line.world || all.back().generation != generation) {
    all.push_back({line.step, line.step, line.world, generation});
  }
  all.back().last_step = line.step;
}

MetricsHistory load_metrics(const FileSystem& fs, const record::RunDirectory& run, std::vector<std::string>& notes) {
  MetricsHistory history;
  history.scan = record::scan_metrics(fs, run.metrics(), [&](const MetricsLine& line) {
    note_membership(history, line);
    if (line.is_eval) {
      history.eval.push_back(line);
      return;
    }
    history.train.push_back(line);
    if (std::isnan(line.loss) && history.steps_without_finite_loss++ == 0) {
      history.first_step_without_finite_loss = line.step;
    }
  });
  if (history.scan.unreadable > 0) {
    notes.push_back(str(run.metrics(), ":", history.scan.first_unreadable, ": is not a line of metrics; ",
                        history.scan.unreadable, " such line(s) were passed over"));
  }
  return history;
}

}  // namespace

uint64_t MetricsHistory::last_step() const {
  uint64_t step = 0;
  if (!train.empty()) step = train.back().step;
  if (!eval.empty()) step = std::max(step, eval.back().step);
  return step;
}

TimeSplit MetricsHistory::time() const {
  const auto sum = [](const std::vector<MetricsLine>& lines, double MetricsLine::*member) {
    double total = kNan;
    for (const MetricsLine& line : lines) {
      if (!std::isnan(line.*member)) total = (std::isnan(total) ? 0 : total) + line.*member;
    }
    return total;
  };
  return {sum(train, &MetricsLine::data_s),
          sum(train, &MetricsLine::forward_s),
          sum(train, &MetricsLine::backward_s),
          sum(train, &MetricsLine::optimizer_s),
          sum(train, &MetricsLine::other_s),
          sum(eval, &MetricsLine::eval_seconds),
          kNan};
}

const MetricsLine* MetricsHistory::best_eval() const {
  const MetricsLine* best = nullptr;
  for (const MetricsLine& line : eval) {
    if (!std::isnan(line.eval_top1) && (!best || line.eval_top1 > best->eval_top1)) best = &line;
  }
  return best;
}

Records load_records(const FileSystem& fs, const record::RunDirectory& run) {
  Records records;
  records.directory = run.path();
  auto& notes = records.notes;
  try_load(records.recipe, notes, [&] { return load_object(fs, run.recipe_json(), notes); });
  try_load(records.run, notes, [&] { return load_object(fs, run.run_json(), notes); });
  try_load(records.evaluation, notes, [&] { return load_object(fs, run.evaluation(), notes); });
  try_load(records.summary, notes, [&] { return load_object(fs, run.summary(), notes); });
  try_load(records.recipe_yaml, notes,
           [&] { return fs.exists(run.recipe_yaml()) ? fs.read_file(run.recipe_yaml()) : std::string(); });
  try_load(records.metrics, notes, [&] { return load_metrics(fs, run, notes); });
  return records;
}

const OrderedJson& child(const OrderedJson& object, std::string_view key) {
  static const OrderedJson kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(std::string(key));
  return found == object.end() ? kNull : *found;
}

double number(const OrderedJson& object, std::string_view key) {
  const OrderedJson& value = child(object, key);
  return value.is_number() ? value.get<double>() : kNan;
}

std::string text(const OrderedJson& object, std::string_view key) {
  const OrderedJson& value = child(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

double first_of(std::initializer_list<double> values) {
  for (const double value : values) {
    if (!std::isnan(value)) return value;
  }
  return kNan;
}

}  // namespace skytrain::observe
