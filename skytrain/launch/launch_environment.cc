#include "skytrain/launch/launch_environment.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/node_options.h"
#include "skytrain/launch/slurm_hosts.h"

namespace skytrain::launch {
namespace {

constexpr int kMostNodes = 65536, kMostRanks = 4096;
constexpr char kIgnore[] = "--standalone ignores the cluster's variables; --nodes and --join take their place";

class Reader {
 public:
  explicit Reader(const EnvironmentMap& environment) : environment_(environment) {}

  bool has(const char* name) const { return !text(name).empty(); }
  std::string text(const char* name) const {
    const auto at = environment_.find(name);
    return at == environment_.end() ? "" : at->second;
  }
  std::string need(const char* name, const char* because) const {
    if (!has(name)) throw Error(ErrorKind::kUsage, name, str("is not set, though ", because, " is"), kIgnore);
    return text(name);
  }
  int number(const char* name, int least, int most) const {
    const std::string digits = text(name);
    const bool plain = !digits.empty() && digits.size() <= 9 && digits.find_first_not_of("0123456789") == digits.npos;
    const int value = plain ? std::stoi(digits) : -1;
    if (value < least || value > most) {
      throw refuse(name, str("is no number from ", least, " to ", most));
    }
    return value;
  }
  int need_number(const char* name, int least, int most, const char* because) const {
    need(name, because);
    return number(name, least, most);
  }
  Error refuse(const char* name, const std::string& what) const {
    return Error(ErrorKind::kUsage, str(name, "=", printable(text(name), 80)), what, kIgnore);
  }
  // host and port in one or in two variables.
  HostPort place(const char* host, const char* port, const char* because) const {
    HostPort place = parse_host_port(bracketed(need(host, because)), kNodePort, host);
    if (port != nullptr && has(port)) place.port = number(port, 1, 65535);
    return place;
  }

 private:
  // A bare IPv6 address, which needs no brackets where the port is elsewhere.
  static std::string bracketed(const std::string& host) {
    return std::count(host.begin(), host.end(), ':') > 1 && host[0] != '[' ? "[" + host + "]" : host;
  }

  const EnvironmentMap& environment_;
};

void check_rank(const Reader& env, const Launch& launch, const char* name) {
  if (launch.node_rank >= launch.nodes) {
    throw env.refuse(name, str("is beyond the ", launch.nodes, " nodes that ", launch.from, " tells of"));
  }
}

// A pod that is told to find itself at "localhost": the others come from outside.
void open_up(Launch& launch) {
  const std::string& host = launch.join.host;
  if (launch.node_rank == 0 && launch.nodes > 1 && (host == "localhost" || host == "127.0.0.1"))
    launch.join.host = "::";
}

Launch of_skytrain(const Reader& env) {
  Launch launch;
  launch.from = "SKYTRAIN_NODES";
  launch.nodes = env.number("SKYTRAIN_NODES", 1, kMostNodes);
  const bool asked = env.has("SKYTRAIN_NODE_RANK");
  const char* const rank = asked ? "SKYTRAIN_NODE_RANK" : "JOB_COMPLETION_INDEX";
  if (env.has(rank)) launch.node_rank = env.number(rank, 0, kMostNodes);
  check_rank(env, launch, rank);
  if (launch.nodes > 1) launch.join = env.place("SKYTRAIN_JOIN", nullptr, "SKYTRAIN_NODES");
  return launch;
}

Launch of_torchrun(const Reader& env) {
  Launch launch;
  launch.from = "PET_NNODES";
  std::string nodes = env.text("PET_NNODES");
  const size_t colon = nodes.find(':');
  if (colon != std::string::npos) {
    if (nodes.substr(0, colon) != nodes.substr(colon + 1)) {
      throw env.refuse("PET_NNODES", "is a range, and this launcher needs a number of nodes");
    }
    nodes = nodes.substr(0, colon);
  }
  const EnvironmentMap one = {{"PET_NNODES", nodes}};
  launch.nodes = Reader(one).number("PET_NNODES", 1, kMostNodes);
  if (env.has("PET_NODE_RANK")) launch.node_rank = env.number("PET_NODE_RANK", 0, kMostNodes);
  check_rank(env, launch, "PET_NODE_RANK");
  const std::string ranks = env.text("PET_NPROC_PER_NODE");
  const bool words = ranks == "auto" || ranks == "gpu" || ranks == "cpu" || ranks.empty();
  if (!words) launch.ranks = env.number("PET_NPROC_PER_NODE", 1, kMostRanks);
  // Kubeflow sets both kinds; WORLD_SIZE counts nodes in some versions and ranks in others.
  if (env.has("WORLD_SIZE")) {
    const int world = env.number("WORLD_SIZE", 1, kMostNodes * kMostRanks / 64);
    if (world != launch.nodes && (launch.ranks == 0 || world != launch.nodes * launch.ranks)) {
      throw env.refuse("WORLD_SIZE", str("fits neither PET_NNODES=", launch.nodes, " nor their ranks"));
    }
  }
  if (launch.nodes == 1) return launch;
  if (env.has("PET_RDZV_ENDPOINT")) {
    launch.join = env.place("PET_RDZV_ENDPOINT", nullptr, "PET_NNODES");
  } else {
    launch.join = env.place("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES");
  }
  return launch;
}

Launch of_sagemaker(const Reader& env) {
  Launch launch;
  launch.from = "SageMaker";
  std::vector<std::string> hosts;
  try {
    hosts = parse_json(env.text("SM_HOSTS"), "").get<std::vector<std::string>>();
  } catch (const std::exception&) {
    throw env.refuse("SM_HOSTS", "is no list of names in JSON");
  }
  const std::string current = env.need("SM_CURRENT_HOST", "SM_HOSTS");
  const auto at = std::find(hosts.begin(), hosts.end(), current);
  if (at == hosts.end()) throw env.refuse("SM_CURRENT_HOST", "is not in SM_HOSTS");
  launch.nodes = static_cast<int>(hosts.size());
  launch.node_rank = static_cast<int>(at - hosts.begin());
  if (env.has("SM_NUM_GPUS")) launch.ranks = env.number("SM_NUM_GPUS", 0, kMostRanks);
  if (launch.nodes == 1) return launch;
  launch.interface = env.text("SM_NETWORK_INTERFACE_NAME");
  launch.join = parse_host_port(hosts.front(), kNodePort, "SM_HOSTS");
  return launch;
}

std::optional<Launch> of_slurm(const Reader& env) {
  Launch launch;
  launch.from = "Slurm";
  const bool step = env.has("SLURM_STEP_ID");
  const char* const count = step && env.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  if (!env.has(count)) return std::nullopt;
  launch.nodes = env.number(count, 1, kMostNodes);
  if (launch.nodes == 1) return std::nullopt;
  if (!step) {
    throw Error(ErrorKind::kUsage, str(count, "=", launch.nodes),
                "this is the first node of a Slurm job alone: a step starts the command on all of them",
                "srun --ntasks-per-node=1 skytrain run …; or --standalone for this node alone");
  }
  const char* const tasks = env.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (env.has(tasks) && env.number(tasks, 1, kMostNodes * 16) != launch.nodes) {
    throw Error(ErrorKind::kUsage, str(tasks, "=", env.text(tasks)),
                str("one task a node is needed, and there are ", launch.nodes, " nodes: ranks are --nproc's"),
                "srun --ntasks-per-node=1 skytrain run --nproc 8 …");
  }
  launch.node_rank = env.need_number("SLURM_NODEID", 0, kMostNodes, count);
  check_rank(env, launch, "SLURM_NODEID");
  const char* list = "SLURM_STEP_NODELIST";
  for (const char* const other : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (!env.has(list)) list = other;
  }
  const auto hosts = expand_slurm_hosts(env.need(list, count));
  if (!hosts) throw env.refuse(list, "is no list of hosts");
  if (static_cast<int>(hosts->size()) != launch.nodes) {
    throw env.refuse(list, str("names ", hosts->size(), " hosts, and ", count, " is ", launch.nodes));
  }
  // Jobs that share a node find a port each; below those that the kernel gives out itself.
  constexpr int kFirstPort = 20000, kPorts = 12000;
  const int64_t job = env.number("SLURM_JOB_ID", 0, 999'999'999), id = env.number("SLURM_STEP_ID", 0, 999'999'999);
  launch.join = {hosts->front(), kFirstPort + static_cast<int>((job * 31 + id) % kPorts)};
  return launch;
}

Launch of_tencent(const Reader& env) {
  Launch launch;
  launch.from = "HOST_NUM, INDEX and CHIEF_IP";
  launch.nodes = env.number("HOST_NUM", 1, kMostNodes);
  launch.node_rank = env.need_number("INDEX", 0, kMostNodes, "HOST_NUM");
  check_rank(env, launch, "INDEX");
  if (env.has("HOST_GPU_NUM")) launch.ranks = env.number("HOST_GPU_NUM", 0, kMostRanks);
  if (launch.nodes > 1) launch.join = env.place("CHIEF_IP", nullptr, "HOST_NUM");
  open_up(launch);
  return launch;
}

std::optional<Launch> of_pytorch_job(const Reader& env) {
  Launch launch;
  launch.from = "WORLD_SIZE, RANK and MASTER_ADDR";
  launch.nodes = env.number("WORLD_SIZE", 1, kMostNodes);
  launch.node_rank = env.number("RANK", 0, kMostNodes);
  check_rank(env, launch, "RANK");
  if (env.has("NPROC_PER_NODE")) launch.ranks = env.number("NPROC_PER_NODE", 0, kMostRanks);
  if (launch.nodes > 1) launch.join = env.place("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE");
  open_up(launch);
  return launch;
}

}  // namespace

std::optional<Launch> find_launch(const EnvironmentMap& environment) {
  const Reader env(environment);
  if (env.has("TORCHELASTIC_RUN_ID") || env.has("LOCAL_RANK")) return std::nullopt;
  if (env.has("SKYTRAIN_NODES")) return of_skytrain(env);
  if (env.has("PET_NNODES")) return of_torchrun(env);
  if (env.has("SM_HOSTS")) return of_sagemaker(env);
  if (env.has("SLURM_JOB_ID")) return of_slurm(env);
  if (env.has("HOST_NUM") && (env.has("CHIEF_IP") || env.has("INDEX"))) return of_tencent(env);
  if (env.has("WORLD_SIZE") && env.has("RANK")) return of_pytorch_job(env);
  return std::nullopt;
}

EnvironmentMap this_environment() {
  EnvironmentMap map;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) map.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return map;
}

}  // namespace skytrain::launch
