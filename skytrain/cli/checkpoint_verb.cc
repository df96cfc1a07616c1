// `skytrain checkpoint`: what is in a folder of checkpoints, and whether it is whole.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/log.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/compare.h"
#include "skytrain/checkpoint/copy.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::cli {
namespace {

using checkpoint::Candidate;
using checkpoint::TensorDifference;

struct Flags {
  std::string path, other;
  int64_t keep = 0;
  bool dry_run = false, also_kept = false, json = false;
};

bool stopped() { return StopSignal::requests() > 0; }

bool is_checkpoint(const FileSystem& fs, const std::string& path) { return fs.exists(path + "/manifest.json"); }

// The folder of checkpoints that `path` names: itself, or a run's.
std::string folder_of(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) throw Error(ErrorKind::kUsage, path, "there is nothing", "give a run, or its folder of checkpoints");
  if (info->type != FileInfo::Type::kDirectory) throw Error(ErrorKind::kUsage, path, "is a file, expected a folder");
  if (fs.exists(path + "/checkpoints")) return path + "/checkpoints";
  const std::vector<std::string> names = fs.list(path);
  const bool any =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("step-"); });
  if (!any && !names.empty()) {
    throw Error(ErrorKind::kUsage, path, "is neither a run nor a folder of checkpoints",
                "give a run: runs/NAME/TIME, or its folder of checkpoints");
  }
  return path;
}

// Those in a folder, or the one that path is. hash: all bytes are read.
std::vector<Candidate> candidates(const FileSystem& fs, std::string path, bool hash) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!is_checkpoint(fs, path)) return checkpoint::list_checkpoints(fs, folder_of(fs, path), hash);
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  std::vector<Candidate> found;
  for (Candidate& one : checkpoint::list_checkpoints(fs, parent, /*hash=*/false)) {
    if (one.path.ends_with("/" + name)) found.push_back(std::move(one));
  }
  if (!hash || found.empty() || !found[0].valid) return found;
  return {checkpoint::examine_content(fs, found[0])};
}

uint64_t bytes_of(const checkpoint::Manifest& manifest) {
  uint64_t bytes = 0;
  for (const auto& file : manifest.files) bytes += file.bytes;
  return bytes;
}

const char* trouble_name(Candidate::Trouble trouble) {
  switch (trouble) {
    case Candidate::Trouble::kNone:
      return "valid";
    case Candidate::Trouble::kUncommitted:
      return "uncommitted";
    case Candidate::Trouble::kMisnamed:
      return "misnamed";
    case Candidate::Trouble::kDamaged:
      return "damaged";
    case Candidate::Trouble::kTooNew:
      return "too new";
    case Candidate::Trouble::kSuperseded:
      return "superseded";
    case Candidate::Trouble::kUnreadable:
      return "unreadable";
  }
  return "";
}

OrderedJson candidate_json(const FileSystem& fs, const Candidate& one) {
  OrderedJson json = {{"path", one.path}, {"step", one.step}, {"status", trouble_name(one.trouble)}};
  if (!one.reason.empty()) json["reason"] = one.reason;
  if (!one.valid) return json;
  const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, one.path);
  json["samples"] = manifest.samples;
  json["bytes"] = bytes_of(manifest);
  json["created"] = format_utc(manifest.created_unix_seconds);
  return json;
}

int list(const Flags& flags) {
  const FileSystem& fs = FileSystem::real();
  OrderedJson all = OrderedJson::array();
  TwoColumns table;
  for (const Candidate& one : candidates(fs, flags.path, /*hash=*/false)) {
    all.push_back(candidate_json(fs, one));
    const OrderedJson& json = all.back();
    table.row(one.path.substr(one.path.rfind('/') + 1),
              one.valid ? str(human_count(json["samples"].get<double>()), " samples, ",
                              human_bytes(json["bytes"].get<double>()), ", ", json["created"].get<std::string>())
                        : str(trouble_name(one.trouble), ": ", printable(one.reason, 500)));
  }
  if (flags.json) {
    print_json({{"status", "ok"}, {"checkpoints", all}});
  } else {
    print_result(all.empty() ? "no checkpoints" : table.text());
  }
  return 0;
}

int verify(const Flags& flags) {
  const FileSystem& fs = FileSystem::real();
  const std::vector<Candidate> found = candidates(fs, flags.path, /*hash=*/true);
  if (found.empty()) throw Error(ErrorKind::kData, flags.path, "has no checkpoints");
  std::vector<std::string> bad;
  size_t valid = 0;
  OrderedJson all = OrderedJson::array();
  for (const Candidate& one : found) {
    all.push_back(candidate_json(fs, one));
    if (one.valid) ++valid;
    // What a killed program left behind is no checkpoint that was lost.
    if (!one.valid && one.trouble != Candidate::Trouble::kUncommitted) bad.push_back(one.path + ": " + one.reason);
  }
  if (flags.json) print_json({{"status", bad.empty() ? "ok" : "damaged"}, {"checkpoints", all}});
  if (!bad.empty()) {
    const Error error(ErrorKind::kData, flags.path, str(bad.size(), " of ", found.size(), " can't be used"),
                      join(bad, "\n"));
    if (!flags.json) throw error;
    return report_error(error);
  }
  if (!flags.json) {
    print_result(str(valid, valid == 1 ? " checkpoint is" : " checkpoints are",
                     " valid: sizes, hashes and headers of all files"));
  }
  return 0;
}

std::string difference_text(const TensorDifference& one) {
  switch (one.kind) {
    case TensorDifference::Kind::kOnlyFirst:
      return "only in the first: " + one.detail;
    case TensorDifference::Kind::kOnlySecond:
      return "only in the second: " + one.detail;
    case TensorDifference::Kind::kShape:
      return one.detail;
    case TensorDifference::Kind::kValues:
      break;
  }
  return str(human_count(static_cast<double>(one.elements)),
             one.elements == 1 ? " element differs, by " : " elements differ, by ", formatted("%.3g", one.most),
             " at most");
}

int diff(const Flags& flags) {
  for (const std::string& path : {flags.path, flags.other}) {
    if (!is_checkpoint(FileSystem::real(), path))
      throw Error(ErrorKind::kUsage, path, "is no checkpoint", "give one: runs/NAME/TIME/checkpoints/step-…");
  }
  const checkpoint::Comparison found = checkpoint::compare(FileSystem::real(), flags.path, flags.other);
  const bool equal = found.differences.empty() && found.state_equal;
  if (flags.json) {
    OrderedJson list = OrderedJson::array();
    for (const TensorDifference& one : found.differences) {
      OrderedJson json = {{"tensor", one.name}, {"difference", difference_text(one)}};
      if (one.kind == TensorDifference::Kind::kValues) {
        json["elements"] = one.elements;
        json["most"] = std::isfinite(one.most) ? OrderedJson(one.most) : OrderedJson();
      }
      list.push_back(std::move(json));
    }
    print_json({{"status", "ok"},
                {"equal", equal},
                {"tensors", found.tensors},
                {"state_equal", found.state_equal},
                {"differences", list}});
    return 0;
  }
  TwoColumns table;
  for (const TensorDifference& one : found.differences) table.row(printable(one.name), difference_text(one));
  if (!found.state_equal) table.row("state", "differs (step, schedule, decisions, …)");
  table.row("tensors", str(found.tensors, ", of which ", found.differences.size(), " differ"));
  print_result(table.text());
  return 0;
}

// Which checkpoints of a run stay for another reason than being new.
std::function<bool(uint64_t)> kept_for_good(const FileSystem& fs, const std::string& run, const std::string& folder) {
  const std::string recipe_path = record::RunDirectory(run).recipe_json();
  if (!fs.exists(recipe_path)) return {};
  const Json recipe = parse_json(fs.read_file(recipe_path), recipe_path);
  const Json spec = recipe.value("checkpoint", Json::object());
  const std::string every = spec.contains("keep_every") && spec["keep_every"].is_string() ? spec["keep_every"] : "";
  uint64_t steps = 0;
  if (every.ends_with(" steps")) steps = std::strtoull(every.c_str(), nullptr, 10);
  if (!every.empty() && steps == 0) {
    throw Error(ErrorKind::kUsage, run,
                "keeps a checkpoint for good each " + printable(every) + " (checkpoint.keep_every)",
                "give --also-kept to remove those too");
  }
  std::vector<uint64_t> best;
  if (spec.contains("best") && spec["best"].is_string()) {
    const auto newest = checkpoint::find_newest_valid(fs, folder, nullptr);
    if (newest) {
      const Json state = checkpoint::read_manifest(fs, newest->path).state;
      const Json& training = state.value("run", Json::object());
      for (const Json& one : training.value("best_steps", Json::array())) best.push_back(one.at(0).get<uint64_t>());
      const Json::json_pointer former("/best/step");  // of a run from before there was more than one
      if (best.empty() && training.contains(former)) best.push_back(training[former].get<uint64_t>());
    }
  }
  return [steps, best](uint64_t step) {
    return std::find(best.begin(), best.end(), step) != best.end() || (steps > 0 && step % steps == 0);
  };
}

int prune(const Flags& flags) {
  FileSystem& fs = FileSystem::real();
  const std::string folder = folder_of(fs, flags.path);
  std::optional<Fd> lock;
  if (folder != flags.path) {  // a run: it may be training
    std::string in_use;
    lock = record::try_lock_run(record::RunDirectory(flags.path), &in_use);
    if (!lock) throw Error(ErrorKind::kEnvironment, flags.path, in_use, "wait until it has ended");
  }
  checkpoint::Retention retention{.keep = flags.keep};
  if (folder != flags.path && !flags.also_kept) retention.spared = kept_for_good(fs, flags.path, folder);
  const std::vector<std::string> removed =
      flags.dry_run ? checkpoint::to_be_pruned(fs, folder, retention) : checkpoint::prune(fs, folder, retention);
  if (flags.json) {
    print_json({{"status", "ok"}, {flags.dry_run ? "would_remove" : "removed", removed}});
  } else {
    print_result(removed.empty() ? "nothing to remove"
                                 : str(flags.dry_run ? "would remove\n  " : "removed\n  ", join(removed, "\n  ")));
  }
  return 0;
}

int cp(const Flags& flags) {
  FileSystem& fs = FileSystem::real();
  const std::string from = is_checkpoint(fs, flags.path) ? flags.path : [&] {
    std::vector<Candidate> skipped;
    const auto newest = checkpoint::find_newest_valid(fs, folder_of(fs, flags.path), &skipped);
    for (const Candidate& one : skipped) log_warning(str("passed over ", one.path, ": ", one.reason));
    if (!newest) throw Error(ErrorKind::kData, flags.path, "has no valid checkpoint");
    return newest->path;
  }();
  const std::string path = checkpoint::copy(fs, from, flags.other, stopped);
  if (flags.json) {
    print_json({{"status", "ok"}, {"from", from}, {"path", path}});
  } else {
    print_result(str(from, " copied to ", path));
  }
  return 0;
}

CLI::App* add(CLI::App& app, Actions& actions, const char* name, const char* summary, const char* example,
              const std::shared_ptr<Flags>& flags, int (*work)(const Flags&)) {
  CLI::App* const sub = app.add_subcommand(name, summary);
  add_help_flag(*sub, example);
  sub->add_option("path", flags->path,
                  work == diff ? "A checkpoint: …/step-…" : "A run, its folder of checkpoints, or one checkpoint")
      ->required();
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags, work] { return work(*flags); };
  return sub;
}

}  // namespace

void add_checkpoint(CLI::App& app, Actions& actions) {
  app.require_subcommand(1);
  const auto flags = std::make_shared<Flags>();
  add(app, actions, "list", "Which there are: steps, sizes, times",
      "skytrain checkpoint list runs/mnist/20261130T135007Z", flags, list);
  add(app, actions, "verify", "Read all and compare with their hashes; exit code 4 names files and tensors that differ",
      "skytrain checkpoint verify runs/mnist/20261130T135007Z", flags, verify);
  add(app, actions, "diff", "Compare two, tensor by tensor",
      "skytrain checkpoint diff a/checkpoints/step-00000938 b/checkpoints/step-00000938", flags, diff)
      ->add_option("other", flags->other, "The other checkpoint")
      ->required();
  CLI::App* const pruning =
      add(app, actions, "prune", "Remove all but the newest and those kept for good, and what killed saves left",
          "skytrain checkpoint prune runs/mnist/20261130T135007Z --keep 2", flags, prune);
  pruning->add_option("--keep", flags->keep, "How many of the newest stay")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
  pruning->add_flag("--also-kept", flags->also_kept, "Remove those of checkpoint.keep_every and checkpoint.best too");
  pruning->add_flag("--dry-run", flags->dry_run, "Only tell what would be removed");
  add(app, actions, "cp", "Copy one (of a run: the newest) to another folder, checked on the way",
      "skytrain checkpoint cp runs/mnist/20261130T135007Z /backup/mnist", flags, cp)
      ->add_option("to", flags->other, "The folder that gets it")
      ->required();
}

}  // namespace skytrain::cli
