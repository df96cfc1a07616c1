#include "skytrain/cli/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "skytrain/base/clock.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/machine.h"
#include "skytrain/cli/metric_text.h"
#include "skytrain/cli/output.h"
#include "skytrain_version.h"

namespace skytrain::cli {
namespace {

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

uint64_t samples_to_repeat(const AttemptResult& result) {
  return result.samples - std::min(result.samples, result.saved_samples);
}

bool is_number(const OrderedJson& json, const char* key) { return json.contains(key) && json[key].is_number(); }

}  // namespace

std::string record_text(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson new_run_json(const recipe::Resolved& resolved, const std::vector<std::string>& command,
                         double unix_seconds) {
  return {{"name", resolved.recipe.name},
          {"created", format_utc(unix_seconds)},
          {"command", command},
          {"version", SKYTRAIN_VERSION},
          {"commit", SKYTRAIN_COMMIT},
          {"recipe_file", resolved.file},
          {"recipe_fingerprint", recipe::fingerprint(resolved.recipe)},
          {"host", machine_json(this_machine())},
          {"attempts", OrderedJson::array()}};
}

OrderedJson new_attempt_json(bool resume, const std::vector<std::string>& command, double unix_seconds) {
  const Machine machine = this_machine();
  return {
      {"started", format_utc(unix_seconds)}, {"resume", resume},          {"host", machine.host}, {"pid", ::getpid()},
      {"version", SKYTRAIN_VERSION},         {"commit", SKYTRAIN_COMMIT}, {"command", command}};
}

int64_t finish_attempt(FileSystem& fs, const record::RunDirectory& run, const OrderedJson& fields) {
  const std::string text = fs.read_file(run.run_json());
  parse_json(text, run.run_json());  // refuses what is no JSON; the second parse keeps the order of the keys
  OrderedJson json = OrderedJson::parse(text);
  if (!json.is_object() || !json.contains("attempts") || !json["attempts"].is_array() || json["attempts"].empty()) {
    throw Error(ErrorKind::kData, run.run_json(), "has no list of attempts");
  }
  // When it began, how it ended, and then the rest: the order in which people read it.
  OrderedJson& last = json["attempts"].back();
  OrderedJson whole = OrderedJson::object();
  if (last.is_object() && last.contains("started")) whole["started"] = last["started"];
  whole.update(fields);
  if (last.is_object()) whole.update(last);
  last = std::move(whole);
  write_file_atomically(fs, run.run_json(), record_text(json));
  return static_cast<int64_t>(json["attempts"].size());
}

OrderedJson summary_json(const AttemptResult& result) {
  const Json& worker = result.worker_summary;
  OrderedJson out;
  out["status"] = result.status;
  out["run_dir"] = result.run_dir;
  out["report"] = result.report;
  out["steps"] = result.steps;
  out["samples"] = result.samples;
  const auto take = [&](const char* key, const Json& source) {
    if (source.is_object() && source.contains(key)) out[key] = source[key];
  };
  take("steps", worker);
  take("samples", worker);
  take("seconds", worker);
  take("samples_per_second", worker);
  out["time_to_first_step_s"] = result.time_to_first_step_s ? OrderedJson(*result.time_to_first_step_s) : OrderedJson();
  out["peak_rss_bytes"] = result.peak_rss_bytes;
  for (const char* key : {"eval", "train_loss"}) take(key, worker);
  for (const char* key : {"parameters", "devices", "slot", "precision"}) {
    take(key, result.started);
    take(key, worker);
  }
  for (const char* key : {"time", "data_fingerprint"}) take(key, worker);
  if (!result.torch_version.empty()) out["torch_version"] = result.torch_version;
  out["version"] = SKYTRAIN_VERSION;
  out["attempts"] = result.attempts;
  if (!result.checkpoint.empty()) out["checkpoint"] = result.checkpoint;
  if (result.status == "interrupted") {
    out["saved_step"] = result.saved_step;
    out["samples_to_repeat"] = result.out_of_time ? OrderedJson() : OrderedJson(samples_to_repeat(result));
  }
  if (!result.resume_command.empty()) out["resume_command"] = result.resume_command;
  if (result.error) out["error"] = error_json(*result.error);
  for (const auto& [key, value] : worker.items()) {
    if (!out.contains(key)) out[key] = value;
  }
  return out;
}

std::string interrupted_line(const AttemptResult& result) {
  std::string what;
  if (result.out_of_time) {
    what =
        str("the worker was not done when the grace ended, and was stopped; ",
            result.saved_step == 0 ? "nothing was saved" : str("the newest checkpoint is of step ", result.saved_step),
            ": what came after it will be trained again");
  } else if (result.steps == 0) {
    what = "stopped before the first step; nothing to save";
  } else if (result.saved_step == result.steps) {
    what = str("saved step ", result.steps, ": no sample will be trained again");
  } else {
    const std::string again =
        str(human_count(static_cast<double>(samples_to_repeat(result))), " samples will be trained again");
    what = result.saved_step == 0 ? str("stopped after step ", result.steps, "; nothing was saved: ", again)
                                  : str("stopped after step ", result.steps, "; the newest checkpoint is of step ",
                                        result.saved_step, ": ", again);
  }
  return what + "; resume with: " + result.resume_command;
}

std::string summary_table(const OrderedJson& summary) {
  TwoColumns table;
  table.row("run", summary.value("run_dir", ""));
  if (is_number(summary, "steps")) {
    table.row("steps", human_count(summary["steps"]) + " (" + human_count(summary.value("samples", 0.0)) + " samples)");
  }
  if (is_number(summary, "samples_per_second")) {
    table.row("speed", human_count(summary["samples_per_second"]) + " samples/s");
  }
  const OrderedJson throughput = summary.value("throughput", OrderedJson::object());
  if (is_number(throughput, "mfu")) {
    table.row("arithmetic", formatted("%.1f", throughput["flops_per_second"].get<double>() / 1e9) + " GFLOP/s, " +
                                formatted("%.0f", throughput["mfu"].get<double>() * 100) +
                                " % of matrix products here");
  }
  if (is_number(summary, "time_to_first_step_s")) {
    table.row("time to first step", fixed(summary["time_to_first_step_s"], 2) + " s");
  }
  if (is_number(summary, "train_loss")) table.row("train loss", fixed(summary["train_loss"], 4));
  const OrderedJson eval = summary.value("eval", OrderedJson::object());
  if (is_number(eval, "loss")) table.row("eval loss", fixed(eval["loss"], 4));
  for (const auto& [name, value] : eval.items())
    if (const std::string title = metric_title(name); !title.empty() && value.is_number())
      table.row(title, metric_value(name, value.get<double>()));
  if (summary.value("peak_rss_bytes", uint64_t{0}) > 0) {
    table.row("peak memory", human_bytes(summary["peak_rss_bytes"]));
  }
  table.row("report", summary.value("report", ""));
  return table.text();
}

}  // namespace skytrain::cli
