// `skytrain run`: a foreign program in place of a recipe.

#include <algorithm>
#include <csignal>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/socket.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/launch/authentication.h"
#include "skytrain/launch/find_program.h"
#include "skytrain/launch/job.h"
#include "skytrain/launch/launch_environment.h"
#include "skytrain/launch/rank_shim.h"
#include "skytrain/recipe/scalar.h"

namespace skytrain::cli {
namespace {

struct RunFlags {
  std::vector<std::string> command;
  int ranks = 0, max_restarts = 0;  // ranks: 0 is 1, or what the cluster says
  std::string grace = "30 s", notice_signal = "TERM", log_directory, watch, commit_to;
  int64_t keep = 3;
  int nodes = 0, node_rank = -1;  // nodes: 0 is 1, or what the cluster says
  bool standalone = false;
  std::string join, interface, job_key_file, join_timeout = "10 min", node_timeout = "30 s";
  bool json = false;
};

double seconds_of(const std::string& flag, const std::string& text) {
  using Unit = recipe::Duration::Unit;
  recipe::Duration duration;
  const auto refusal = recipe::read_duration(text, {"s", "min", "h"}, &duration);
  if (refusal || duration.unit != Unit::kSeconds) {
    throw Error(ErrorKind::kUsage, flag, refusal ? refusal->what : str("\"", printable(text, 60), "\" is no time"),
                "write a time with its unit: 30s, 2 min");
  }
  return duration.value;
}

launch::JobKey job_key_of(const RunFlags& flags) {
  if (auto key = launch::find_job_key(flags.job_key_file)) return *key;
  throw Error(ErrorKind::kUsage, launch::kKeyVariable,
              "is not set: the machines of a job prove by a common key that they belong together",
              str("this makes one: ", launch::kMakeKey,
                  "\n  give it to all of them, in that variable or as a file of mode 0600 with --job-key-file"));
}

// What the cluster's variables say, in place of flags that are not given.
void look_around(RunFlags& flags) {
  if (flags.standalone || flags.nodes != 0 || !flags.join.empty()) return;
  const auto found = launch::find_launch(launch::this_environment());
  if (!found) return;
  const bool ranks = flags.ranks == 0 && found->ranks > 0;
  if (ranks) flags.ranks = found->ranks;
  if (found->nodes > 1) {
    flags.nodes = found->nodes;
    flags.join = found->join.text();
    if (flags.node_rank < 0) flags.node_rank = found->node_rank;
    if (flags.interface.empty()) flags.interface = found->interface;
  }
  if (found->nodes == 1 && !ranks) return;
  std::string text = found->from + ":";
  if (found->nodes > 1) text += str(" ", found->nodes, " nodes that meet at ", flags.join);
  if (found->nodes > 1 && flags.node_rank >= 0) text += str(", this is node ", flags.node_rank);
  if (ranks) text += str(found->nodes > 1 ? ", " : " ", flags.ranks, flags.ranks == 1 ? " rank" : " ranks");
  log_info(text);
}

std::optional<launch::NodeOptions> nodes_of(const RunFlags& flags) {
  if (flags.standalone && (flags.nodes > 1 || !flags.join.empty())) {
    throw Error(ErrorKind::kUsage, "--standalone", "is for one machine, and --nodes or --join is given");
  }
  if (flags.nodes <= 1) {
    if (flags.join.empty() && flags.node_rank <= 0) return std::nullopt;
    throw Error(ErrorKind::kUsage, "--nodes", "is missing", "how many machines run this command, all together");
  }
  if (flags.join.empty()) {
    throw Error(ErrorKind::kUsage, "--join", "is missing",
                str("name the machine that the others are to find, the same on all: --join node1:", launch::kNodePort));
  }
  if (flags.node_rank >= flags.nodes) {
    throw Error(ErrorKind::kUsage, "--node-rank", str(flags.node_rank, " is beyond --nodes ", flags.nodes),
                str("numbers go from 0, the machine that --join names, to ", flags.nodes - 1));
  }
  launch::NodeOptions nodes{.key = job_key_of(flags)};
  nodes.nodes = flags.nodes;
  nodes.join = parse_host_port(flags.join, launch::kNodePort, "--join");
  nodes.node_rank = flags.node_rank;
  nodes.interface = flags.interface;
  if (!nodes.interface.empty()) interface_address(nodes.interface);  // so that a wrong name is told now
  nodes.join_timeout = seconds_of("--join-timeout", flags.join_timeout);
  nodes.node_timeout = seconds_of("--node-timeout", flags.node_timeout);
  if (nodes.node_timeout < 3) {
    throw Error(ErrorKind::kUsage, "--node-timeout", "is too short: a node says every second that it lives",
                "3 s is the least");
  }
  return nodes;
}

launch::JobOptions options_of(const RunFlags& flags) {
  if (flags.command.empty()) {
    throw Error(ErrorKind::kUsage, "run", "CMD is missing",
                "what to run comes last: skytrain run --nproc 2 -- python3 train.py");
  }
  if (flags.watch.empty() != flags.commit_to.empty()) {
    throw Error(ErrorKind::kUsage, flags.watch.empty() ? "--watch" : "--commit-to", "is missing",
                "--watch names the folder that the program writes, --commit-to the one for what is complete");
  }
  launch::JobOptions options;
  options.nodes = nodes_of(flags);
  options.command = flags.command;
  options.program = launch::find_program(flags.command.front());
  options.shim = launch::shim_program();
  options.ranks = std::max(flags.ranks, 1);
  options.max_restarts = flags.max_restarts;
  options.grace_seconds = seconds_of("--grace", flags.grace);
  options.notice_signal = flags.notice_signal == "USR1" ? SIGUSR1 : SIGTERM;
  options.log_directory = flags.log_directory;
  options.stdout_to_stderr = flags.json;
  if (!flags.watch.empty()) options.commit = {.watch = flags.watch, .destination = flags.commit_to, .keep = flags.keep};
  return options;
}

Error failure_of(const launch::JobEnd& end, const launch::JobOptions& options) {
  const launch::Failure& failure = *end.failure;
  const std::string hint = failure.last_words.empty() ? failure.cause_hint : "its last lines:\n" + failure.last_words;
  std::string what = launch::describe(failure);
  if (end.world_size > 1 && failure.rank >= 0) what += str(" (the first of ", end.world_size, " ranks to fail)");
  if (options.max_restarts > 0) what += str("; restarts: ", end.restarts, " of ", options.max_restarts);
  return Error(ErrorKind::kLostWorkers, launch::name_of(failure), what, hint);
}

void print_summary(const launch::JobEnd& end, const launch::JobOptions& options) {
  static constexpr const char* kStatus[] = {"complete", "interrupted", "failed", "aborted"};
  OrderedJson json = {{"status", kStatus[static_cast<int>(end.kind)]},
                      {"exit_code", end.exit_code()},
                      {"restarts", end.restarts},
                      {"node_rank", end.node_rank},
                      {"nodes", options.nodes ? options.nodes->nodes : 1},
                      {"ranks", OrderedJson::array()},
                      {"committed", end.committed}};
  for (const launch::RankEnd& rank : end.ranks) {
    json["ranks"].push_back({{rank.status.signalled ? "signal" : "exit_code", rank.status.code}});
  }
  if (end.failure) {
    json["error"] = error_json(failure_of(end, options));
    json["error"]["exit_code"] = end.exit_code();
    if (end.failure->rank >= 0) json["error"]["rank"] = end.failure->rank;
    if (end.failure->node >= 0) json["error"]["node"] = end.failure->node;
  }
  print_json(json);
}

int run_command(RunFlags flags) {
  if (!flags.command.empty()) look_around(flags);
  const launch::JobOptions options = options_of(flags);
  const launch::JobEnd end = launch::run_job(options);
  if (flags.json) print_summary(end, options);
  switch (end.kind) {
    case launch::JobEnd::Kind::kDone:
      break;
    case launch::JobEnd::Kind::kInterrupted:
      report_error(Error(ErrorKind::kInterrupted, "", "interrupted; the same command goes on"));
      break;
    case launch::JobEnd::Kind::kAborted:
      report_error(Error(ErrorKind::kAborted, "", "stopped at once: all processes were killed"));
      break;
    case launch::JobEnd::Kind::kFailed:
      report_error(failure_of(end, options));
      break;
  }
  return end.exit_code();
}

}  // namespace

void add_run(CLI::App& app, Actions& actions) {
  auto flags = std::make_shared<RunFlags>();
  app.footer(
      "Example:\n"
      "  skytrain run --nproc 2 --max-restarts 3 -- python3 train.py --epochs 90\n"
      "  skytrain run --nodes 2 --join node1:29400 --nproc 8 -- python3 train.py      (on both machines)\n\n"
      "Words from -- (or from the first that is no flag) on are the program's own.\n"
      "Exit codes: that of the first rank that failed, 128+N if signal N killed it; 0 done; 75 interrupted by "
      "SIGTERM,\n"
      "SIGUSR1 or Ctrl-C: the same command goes on; 130 second Ctrl-C; 2 the command line; 5 the program can't be\n"
      "started, or not all machines came; 7 a machine was lost. docs/run.md has the environment of a rank.");
  app.add_option("CMD", flags->command, "The program and its words, after --")->type_name("")->expected(-1);
  app.add_option("--nproc", flags->ranks, "Copies of the program (ranks) on this machine  [1]")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  app.add_option("--max-restarts", flags->max_restarts, "How often all ranks are started again when one fails")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  app.add_option("--grace", flags->grace, "From a notice, or a rank's failure, to SIGKILL")->capture_default_str();
  app.add_option("--notice-signal", flags->notice_signal,
                 "What a notice is passed on as: TERM, to all processes of a rank, or USR1, to its first one")
      ->capture_default_str()
      ->check(CLI::IsMember({"TERM", "USR1"}));
  app.add_option("--log-dir", flags->log_directory, "Folder for rank-N.log and all.log")->type_name("DIR");
  app.add_option("--watch", flags->watch, "Folder that the program writes checkpoints into")->type_name("DIR");
  app.add_option("--commit-to", flags->commit_to, "Folder that complete ones are copied to, with hashes")
      ->type_name("DIR");
  app.add_option("--keep", flags->keep, "How many of the newest stay there")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  app.add_option("--nodes", flags->nodes, "Machines that run this command; else as Slurm, Kubeflow … say  [1]")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
  app.add_option("--join", flags->join, "Where they meet: the first machine, the same on all")->type_name("HOST:PORT");
  app.add_option("--node-rank", flags->node_rank, "Number of this machine, 0 is the one of --join; else as they come")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  app.add_option("--interface", flags->interface, "Network interface to use, also for Gloo and NCCL")
      ->type_name("NAME");
  app.add_option("--job-key-file", flags->job_key_file, "File (mode 0600) with the job's key; else SKYTRAIN_JOB_KEY")
      ->type_name("FILE");
  app.add_flag("--standalone", flags->standalone, "This machine alone, whatever the cluster's variables say");
  app.add_option("--join-timeout", flags->join_timeout, "How long machines wait for each other")->capture_default_str();
  app.add_option("--node-timeout", flags->node_timeout, "Silence after which a machine is lost")->capture_default_str();
  app.add_flag("--json", flags->json, "Print a summary as JSON; what ranks print goes to stderr");
  actions.takes_command(&app, &flags->command);
  actions[&app] = [flags] { return run_command(*flags); };
}

}  // namespace skytrain::cli
