// skytrain/launch/launch_environment.h
//
// What a cluster's own variables say of the machines of a job, so that the same command runs on each of them without
// flags. Looked at in this order; the first that is there counts:
//
//   SKYTRAIN_NODES    with SKYTRAIN_JOIN, and JOB_COMPLETION_INDEX (a Kubernetes Job with completionMode: Indexed) or
//                     SKYTRAIN_NODE_RANK
//   PET_NNODES        torchrun's own, which Kubeflow sets: PET_RDZV_ENDPOINT or PET_MASTER_ADDR and PET_MASTER_PORT,
//                     PET_NODE_RANK, PET_NPROC_PER_NODE
//   SM_HOSTS          SageMaker: SM_CURRENT_HOST, SM_NUM_GPUS, SM_NETWORK_INTERFACE_NAME
//   SLURM_JOB_ID      Slurm: SLURM_STEP_NUM_NODES, SLURM_NODEID, SLURM_STEP_NODELIST, SLURM_STEP_NUM_TASKS
//   HOST_NUM          Tencent: CHIEF_IP, INDEX, HOST_GPU_NUM
//   WORLD_SIZE        Kubeflow's PyTorchJob, PAI-DLC, Baidu AIHC, where it counts machines: RANK, MASTER_ADDR,
//                     MASTER_PORT, NPROC_PER_NODE
//
// Pure functions of the map.

#pragma once
#include <map>
#include <optional>
#include <string>

#include "skytrain/base/socket.h"

namespace skytrain::launch {

struct Launch {
  int nodes = 1;
  int node_rank = -1;     // -1: not said
  HostPort join;          // of more than one node
  int ranks = 0;          // of this node; 0: not said
  std::string interface;  // "": not said
  std::string from;       // "Slurm", …
};

using EnvironmentMap = std::map<std::string, std::string>;

// nullopt: nothing is said, or this process is a rank of another launcher already (TORCHELASTIC_RUN_ID, LOCAL_RANK).
// Throws Error(kUsage, VARIABLE) for variables that are missing, are no numbers or contradict each other.
std::optional<Launch> find_launch(const EnvironmentMap& environment);

EnvironmentMap this_environment();

}  // namespace skytrain::launch
