#include "skytrain/launch/rank_environment.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "skytrain/base/error.h"
#include "skytrain/base/socket.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr int kLowestPort = 20000, kTries = 200;

// The port itself when it could be bound, else 0. port 0: any.
int bound(int port) {
  const Fd fd = listen_on(any_address(port));
  return fd ? local_address(fd).port() : 0;
}

}  // namespace

Environment rank_environment(const JobPlace& place, int local_rank) {
  const int rank = place.first_rank + local_rank;
  const char* const nccl = std::getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING");
  return {{"RANK", str(rank)},
          {"LOCAL_RANK", str(local_rank)},
          {"GROUP_RANK", str(place.group_rank)},
          {"ROLE_RANK", str(rank)},
          {"ROLE_NAME", "default"},
          {"WORLD_SIZE", str(place.world_size)},
          {"LOCAL_WORLD_SIZE", str(place.local_world_size)},
          {"GROUP_WORLD_SIZE", str(place.group_world_size)},
          {"ROLE_WORLD_SIZE", str(place.world_size)},
          {"MASTER_ADDR", place.master_address},
          {"MASTER_PORT", str(place.master_port)},
          {"TORCHELASTIC_RUN_ID", place.run_id},
          {"TORCHELASTIC_RESTART_COUNT", str(place.restart_count)},
          {"TORCHELASTIC_MAX_RESTARTS", str(place.max_restarts)},
          {"TORCHELASTIC_USE_AGENT_STORE", "False"},  // rank 0 is the one that listens on MASTER_PORT
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", nccl == nullptr ? "1" : nccl}};
}

int free_port() {
  int end = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> end;
  if (end > kLowestPort) {
    std::random_device random;
    std::uniform_int_distribution<int> port(kLowestPort, std::min(end, 65536) - 1);
    for (int i = 0; i < kTries; ++i) {
      if (const int found = bound(port(random)); found != 0) return found;
    }
  }
  if (const int found = bound(0); found != 0) return found;
  throw Error(ErrorKind::kEnvironment, "MASTER_PORT", "no TCP port is free on this machine");
}

std::string new_run_id() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 2; ++i) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", random());
    id += digits;
  }
  return id;
}

}  // namespace skytrain::launch
