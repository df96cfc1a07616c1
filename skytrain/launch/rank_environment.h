// skytrain/launch/rank_environment.h
//
// What a rank is told of its place in the job, in the variables that torchrun sets
// (https://docs.pytorch.org/docs/stable/elastic/run.html, "Environment Variables", and the worker's environment in
// torch/distributed/elastic/agent/server/local_elastic_agent.py of PyTorch 2.11), so that programs written for torchrun
// work unchanged.

#pragma once
#include <string>
#include <utility>
#include <vector>

namespace skytrain::launch {

struct JobPlace {
  int local_world_size = 1;  // ranks on this machine
  int group_rank = 0;        // number of this machine, of
  int group_world_size = 1;  // so many
  int first_rank = 0;        // number of this machine's first rank in the job, of
  int world_size = 1;        // so many on all machines
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::string run_id;  // of the job, the same after a restart
  int restart_count = 0, max_restarts = 0;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

Environment rank_environment(const JobPlace& place, int local_rank);

// A TCP port that nobody listens on, on any address, IPv4 or IPv6, of this machine. It is taken from below the range
// that the kernel gives to outgoing connections, so that it stays free until rank 0 listens. Throws
// Error(kEnvironment).
int free_port();

// Sixteen hex digits that no other job has.
std::string new_run_id();

}  // namespace skytrain::launch
