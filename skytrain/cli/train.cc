#include "skytrain/cli/train.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "skytrain/base/console.h"
#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/process.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/cli/absolute_path.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/run_record.h"
#include "skytrain/cli/train_view.h"
#include "skytrain/elastic/training_run.h"
#include "skytrain/elastic/worker_location.h"
#include "skytrain/observe/report.h"

namespace skytrain::cli {
namespace {

// A previous attempt that is just ending holds the lock until its worker has saved.
constexpr double kLockWaitSeconds = 10;

// The command line of this process.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// Records and messages are JSON, which is UTF-8: a path that is not can't be told in them.
void require_utf8(ErrorKind kind, const char* where, const std::string& text, const char* hint) {
  if (invalid_utf8_at(text) == std::string::npos) return;
  throw Error(kind, where, "\"" + printable(text) + "\" is not UTF-8", hint);
}

void require_utf8_paths(const TrainFlags& flags) {
  constexpr const char* kRename = "rename the file or folder, or give another";
  require_utf8(ErrorKind::kUsage, "RECIPE", flags.recipe, kRename);
  require_utf8(ErrorKind::kUsage, "--runs", flags.runs, kRename);
  require_utf8(ErrorKind::kUsage, "--resume", flags.resume, kRename);
  require_utf8(ErrorKind::kEnvironment, "the current folder", std::filesystem::current_path().string(),
               "rename it, or run skytrain in another one");
}

// Only for a figure of the summary: without /proc it is not known, and the run's result stands.
std::optional<double> own_start_unix_seconds() {
  try {
    return process_start_unix_seconds(::getpid());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

class TrainCommand {
 public:
  explicit TrainCommand(const TrainFlags& flags) : flags_(flags) {}

  int run() {
    if (flags_.runs.empty()) throw Error(ErrorKind::kUsage, "--runs", "is empty", "give the folder of runs");
    require_utf8_paths(flags_);
    set_log_level(flags_.quiet ? LogLevel::kWarning : LogLevel::kInfo);
    const recipe::Resolved wanted = recipe::resolve_file(fs_, flags_.recipe, flags_.sets);
    if (flags_.explain) return explain(wanted);
    choice_ = choose_run(fs_, flags_.runs, parse_resume(flags_.resume), wanted);
    for (const std::string& note : choice_.notes) log_info("note: " + note);
    if (choice_.complete) return nothing_left();
    const std::string worker = elastic::require_worker(elastic::locate_worker());
    if (flags_.dry_run) return dry_run();

    resuming_ = choice_.run.has_value();
    const Fd lock = resuming_ ? open_run(wanted) : create_run();
    if (choice_.complete) return nothing_left();  // the attempt that held the lock came to the end
    record::add_attempt(fs_, run_dir(), new_attempt_json(resuming_, own_command(), clock_.unix_seconds()));
    set_log_file(run_dir().log());
    log_info((resuming_ ? "resuming " : "run ") + run_dir().path());
    return conclude(follow_worker(worker, lock));
  }

 private:
  const record::RunDirectory& run_dir() const { return *choice_.run; }

  int explain(const recipe::Resolved& wanted) const {
    if (flags_.json) {
      print_json(recipe::explain_json(wanted));
    } else {
      print_result(recipe::explain(wanted));
    }
    return 0;
  }

  int nothing_left() const {
    log_info(run_dir().path() + " is complete: nothing left to do");
    log_info("report: " + run_dir().report());
    log_info("to train it again: --resume never");
    if (flags_.json) print_json(OrderedJson::parse(fs_.read_file(run_dir().summary())));
    return 0;
  }

  int dry_run() const {
    OrderedJson plan;
    plan["status"] = "dry-run";
    if (choice_.run) {
      const auto newest = checkpoint::find_newest_valid(fs_, run_dir().checkpoints(), nullptr);
      plan["action"] = choice_.extended ? "extend" : "resume";
      plan["run_dir"] = absolute_path(run_dir().path());
      plan["from_step"] = newest ? newest->step : 0;
      log_info(str("would ", plan["action"].get<std::string>(), " ", run_dir().path(), " after step ",
                   plan["from_step"].get<uint64_t>()));
    } else {
      plan["action"] = "new";
      plan["runs"] = absolute_path(flags_.runs + "/" + choice_.resolved.recipe.name);
      log_info("would start a new run below " + flags_.runs + "/" + choice_.resolved.recipe.name);
    }
    if (flags_.json) print_json(plan);
    return 0;
  }

  Fd create_run() {
    const recipe::Resolved& resolved = choice_.resolved;
    Fd lock;
    choice_.run = record::RunDirectory::create(fs_, clock_, flags_.runs, resolved.recipe.name,
                                               recipe::explain(resolved), recipe::to_json(resolved.recipe),
                                               new_run_json(resolved, own_command(), clock_.unix_seconds()),
                                               [&](const auto& run) { lock = record::lock_run(run, 0); });
    return lock;
  }

  Fd open_run(const recipe::Resolved& wanted) {
    std::string in_use;
    std::optional<Fd> free = record::try_lock_run(run_dir(), &in_use);
    if (!free) log_info(str(run_dir().path(), " ", in_use, ": waiting up to ", kLockWaitSeconds, " s"));
    Fd lock = free ? std::move(*free) : record::lock_run(run_dir(), kLockWaitSeconds);
    // Whoever held the lock may have changed what was seen before.
    RunChoice now = examine_run(fs_, run_dir(), wanted);
    choice_ = std::move(now);
    if (choice_.complete) return lock;
    // First, so that a crash in between does not leave a longer recipe that looks complete.
    if (choice_.extended) fs_.remove_file(run_dir().summary());
    if (choice_.recipe_changed) {
      write_file_atomically(fs_, run_dir().recipe_yaml(), recipe::explain(choice_.resolved));
      write_file_atomically(fs_, run_dir().recipe_json(), record_text(recipe::to_json(choice_.resolved.recipe)));
    }
    return lock;
  }

  AttemptResult follow_worker(const std::string& worker, const Fd& lock) {
    TrainView::Options view_options;
    view_options.name = choice_.resolved.recipe.name;
    view_options.model = choice_.resolved.recipe.model.name;
    view_options.resuming = resuming_;
    view_options.quiet = flags_.quiet;
    view_options.progress = detect_terminal();
    TrainView view(std::move(view_options));

    elastic::WorkerOptions options;
    options.program = worker;
    options.log_file = run_dir().log();
    options.fds = {{lock.get(), proto::kLockFd}};
    options.grace_seconds = choice_.resolved.recipe.elastic.grace.value;
    options.order = proto::Start{.recipe = recipe::to_json(choice_.resolved.recipe),
                                 .run_directory = absolute_path(run_dir().path()),
                                 .resume = resuming_,
                                 .log_every = flags_.log_every};
    AttemptResult result;
    std::optional<elastic::WorkerEnd> end;
    try {
      end = elastic::run_training(options, choice_.resolved.recipe.elastic.max_restarts, view);
    } catch (const Error& error) {
      end = elastic::WorkerEnd{error};
    }
    view.finish();

    result.steps = view.step();
    result.samples = view.samples();
    result.torch_version = view.torch_version();
    const std::optional<double> began = own_start_unix_seconds();
    if (const auto first = view.first_step_unix_seconds(); first && began)
      result.time_to_first_step_s = *first - *began;
    if (const auto& started = view.started()) {
      result.started = {{"resumed_from_step", started->resume_step},
                        {"parameters", started->parameters},
                        {"devices", started->devices},
                        {"slot", started->slot},
                        {"precision", started->precision}};
    }
    uint64_t worker_peak = end->peak_rss_bytes;
    if (const auto* finished = std::get_if<proto::Finished>(&end->outcome)) {
      result.status = "complete";
      result.worker_summary = finished->summary;
      result.steps = finished->summary.value("steps", result.steps);
      result.samples = finished->summary.value("samples", result.samples);
    } else if (const auto* interrupted = std::get_if<proto::Interrupted>(&end->outcome)) {
      result.status = "interrupted";
      result.out_of_time = interrupted->summary.is_null();
      if (!result.out_of_time) result.worker_summary = interrupted->summary;
      result.saved_step = interrupted->saved_step;
      result.saved_samples = interrupted->saved_samples;
      result.steps = interrupted->step;
      result.samples = interrupted->samples;
      result.checkpoint = interrupted->checkpoint;
      if (result.out_of_time) look_for_checkpoint(result);
      const std::vector<std::string> command = own_command();
      result.resume_command = resume_command(command.empty() ? "skytrain" : command.front(), flags_);
    } else {
      result.status = "failed";
      result.error = std::get<Error>(end->outcome);
    }
    if (result.worker_summary.is_object()) {
      worker_peak = std::max(worker_peak, result.worker_summary.value("peak_rss_bytes", uint64_t{0}));
    }
    result.peak_rss_bytes = worker_peak + peak_rss_bytes();
    result.run_dir = absolute_path(run_dir().path());
    result.report = absolute_path(run_dir().report());
    return result;
  }

  // Of a worker that was stopped: it may have committed one and not told of it yet.
  void look_for_checkpoint(AttemptResult& result) const {
    for (const checkpoint::Candidate& one :
         checkpoint::list_checkpoints(fs_, run_dir().checkpoints(), /*hash=*/false)) {
      if (!one.valid || one.step <= result.saved_step) continue;
      result.saved_step = one.step;
      result.checkpoint = one.path;
      result.steps = std::max(result.steps, one.step);
    }
  }

  // Writes the records, shows the result, returns the exit code. Records that can't be written are a warning: the
  // result of training stands.
  int conclude(AttemptResult result) {
    const ErrorKind kind = result.error                     ? result.error->kind()
                           : result.status == "interrupted" ? ErrorKind::kInterrupted
                                                            : ErrorKind{0};
    const int code = exit_code(kind);
    if (never_began(result)) return forget(std::move(result));
    record_or_warn("run.json", [&] {
      OrderedJson end = {{"ended", format_utc(clock_.unix_seconds())},
                         {"status", result.status},
                         {"exit_code", code},
                         {"steps", result.steps}};
      for (const auto& [key, value] : result.started.items()) end[key] = value;
      if (!result.torch_version.empty()) end["torch_version"] = result.torch_version;
      if (result.error) end["error"] = error_json(*result.error);
      result.attempts = finish_attempt(fs_, run_dir(), end);
    });
    const OrderedJson summary = summary_json(result);
    record_or_warn("summary.json", [&] { write_file_atomically(fs_, run_dir().summary(), record_text(summary)); });
    // First, as the kill that was announced does not wait for the report.
    if (result.status == "interrupted") console::print_line(STDERR_FILENO, interrupted_line(result));
    if (kind != ErrorKind::kAborted) {  // "at once" leaves no time for a report
      record_or_warn("the report", [&] { observe::write_report(fs_, run_dir()); });
    }
    if (flags_.json) print_json(summary);
    if (result.error) return report_error(*result.error);
    if (result.status != "interrupted" && !flags_.quiet) {
      console::print_line(STDERR_FILENO, summary_table(summary));
    }
    return code;
  }

  // A new run whose recipe or data could not be used: there is nothing in it to go on from or to look at.
  bool never_began(const AttemptResult& result) const {
    return !resuming_ && result.error && result.started.empty() &&
           (result.error->kind() == ErrorKind::kRecipe || result.error->kind() == ErrorKind::kData);
  }

  int forget(AttemptResult result) {
    set_log_file("");
    record_or_warn("the run directory", [&] { fs_.remove_tree(run_dir().path()); });
    result.run_dir = result.report = "";
    if (flags_.json) print_json(summary_json(result));
    return report_error(*result.error);
  }

  template <class Write>
  static void record_or_warn(const char* what, Write&& write) {
    try {
      write();
    } catch (const Error& error) {
      log_warning(str(what, " was not written: ", error.message()));
    }
  }

  const TrainFlags& flags_;
  FileSystem& fs_ = FileSystem::real();
  Clock& clock_ = Clock::real();
  RunChoice choice_;
  bool resuming_ = false;
};

}  // namespace

int train(const TrainFlags& flags) { return TrainCommand(flags).run(); }

}  // namespace skytrain::cli
