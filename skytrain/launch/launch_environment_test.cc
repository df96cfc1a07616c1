#include "skytrain/launch/launch_environment.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/slurm_hosts.h"

namespace skytrain::launch {
namespace {

// "Slurm: node 1 of 2 at n1:29400, 8 ranks, eth0", "nothing", or the refusal's place.
std::string found(const EnvironmentMap& environment) {
  try {
    const auto launch = find_launch(environment);
    if (!launch) return "nothing";
    std::string text = str(launch->from, ": node ", launch->node_rank, " of ", launch->nodes);
    if (launch->nodes > 1) text += " at " + launch->join.text();
    if (launch->ranks > 0) text += str(", ", launch->ranks, " ranks");
    return launch->interface.empty() ? text : text + ", " + launch->interface;
  } catch (const Error& error) {
    return "refused: " + error.where();
  }
}

EnvironmentMap with(EnvironmentMap environment, const EnvironmentMap& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

struct Case {
  const char* name;
  EnvironmentMap environment;
  const char* expected;
};

class LaunchEnvironment : public testing::TestWithParam<Case> {};

// As `srun env` prints it in a job of four nodes.
const EnvironmentMap kSlurm = {{"SLURM_JOB_ID", "48213"},
                               {"SLURM_JOBID", "48213"},
                               {"SLURM_NNODES", "4"},
                               {"SLURM_JOB_NUM_NODES", "4"},
                               {"SLURM_JOB_NODELIST", "gpu[003-006]"},
                               {"SLURM_NODELIST", "gpu[003-006]"},
                               {"SLURM_STEP_ID", "0"},
                               {"SLURM_STEPID", "0"},
                               {"SLURM_STEP_NUM_NODES", "4"},
                               {"SLURM_STEP_NUM_TASKS", "4"},
                               {"SLURM_STEP_NODELIST", "gpu[003-006]"},
                               {"SLURM_NTASKS", "4"},
                               {"SLURM_PROCID", "2"},
                               {"SLURM_LOCALID", "0"},
                               {"SLURM_NODEID", "2"}};
const EnvironmentMap kSageMaker = {{"SM_HOSTS", R"(["algo-1","algo-2"])"},
                                   {"SM_CURRENT_HOST", "algo-2"},
                                   {"SM_NUM_GPUS", "8"},
                                   {"SM_NETWORK_INTERFACE_NAME", "eth0"}};
const EnvironmentMap kPyTorchJob = {{"MASTER_ADDR", "train-master-0"},
                                    {"MASTER_PORT", "23456"},
                                    {"WORLD_SIZE", "3"},
                                    {"RANK", "1"},
                                    {"PYTHONUNBUFFERED", "1"}};
const EnvironmentMap kKubeflow = with(kPyTorchJob, {{"PET_NNODES", "3"},
                                                    {"PET_NODE_RANK", "1"},
                                                    {"PET_NPROC_PER_NODE", "4"},
                                                    {"PET_MASTER_ADDR", "train-master-0"},
                                                    {"PET_MASTER_PORT", "23456"}});
const EnvironmentMap kIndexedJob = {{"JOB_COMPLETION_INDEX", "2"},
                                    {"SKYTRAIN_NODES", "3"},
                                    {"SKYTRAIN_JOIN", "job-0.svc:29400"},
                                    {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
const EnvironmentMap kTencent = {{"HOST_NUM", "2"}, {"INDEX", "1"}, {"CHIEF_IP", "10.1.2.3"}, {"HOST_GPU_NUM", "8"}};

const Case kCases[] = {
    {"empty", {}, "nothing"},
    {"slurm", kSlurm, "Slurm: node 2 of 4 at gpu003:26603"},
    {"slurm_step_of_some_nodes",
     with(kSlurm, {{"SLURM_STEP_NUM_NODES", "2"},
                   {"SLURM_STEP_NUM_TASKS", "2"},
                   {"SLURM_STEP_NODELIST", "gpu[005,006]"},
                   {"SLURM_NODEID", "1"},
                   {"SLURM_STEP_ID", "3"}}),
     "Slurm: node 1 of 2 at gpu005:26606"},
    {"slurm_one_node", with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "gpu003"}}), "nothing"},
    {"slurm_script_on_one_node", {{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "1"}}, "nothing"},
    {"slurm_script_on_two", {{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "2"}}, "refused: SLURM_NNODES=2"},
    {"slurm_tasks", with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "32"}}), "refused: SLURM_STEP_NUM_TASKS=32"},
    {"slurm_node_beyond", with(kSlurm, {{"SLURM_NODEID", "4"}}), "refused: SLURM_NODEID=4"},
    {"slurm_no_node", with(kSlurm, {{"SLURM_NODEID", ""}}), "refused: SLURM_NODEID"},
    {"slurm_list_of_others", with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[3-5]"}}),
     "refused: SLURM_STEP_NODELIST=gpu[3-5]"},
    {"slurm_bad_list", with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[3-"}}), "refused: SLURM_STEP_NODELIST=gpu[3-"},
    {"slurm_bad_number", with(kSlurm, {{"SLURM_STEP_NUM_NODES", "4x"}}), "refused: SLURM_STEP_NUM_NODES=4x"},
    {"slurm_without_a_list",
     with(kSlurm, {{"SLURM_STEP_NODELIST", ""}, {"SLURM_JOB_NODELIST", ""}, {"SLURM_NODELIST", ""}}),
     "refused: SLURM_NODELIST"},
    {"sagemaker", kSageMaker, "SageMaker: node 1 of 2 at algo-1:29400, 8 ranks, eth0"},
    {"sagemaker_alone",
     {{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", "algo-1"}, {"SM_NUM_GPUS", "0"}},
     "SageMaker: node 0 of 1"},
    {"sagemaker_stranger", with(kSageMaker, {{"SM_CURRENT_HOST", "algo-9"}}), "refused: SM_CURRENT_HOST=algo-9"},
    {"sagemaker_no_json", with(kSageMaker, {{"SM_HOSTS", "algo-1,algo-2"}}), "refused: SM_HOSTS=algo-1,algo-2"},
    {"sagemaker_numbers", with(kSageMaker, {{"SM_HOSTS", "[1,2]"}}), "refused: SM_HOSTS=[1,2]"},
    {"pytorch_job", kPyTorchJob, "WORLD_SIZE, RANK and MASTER_ADDR: node 1 of 3 at train-master-0:23456"},
    {"pytorch_job_master", with(kPyTorchJob, {{"RANK", "0"}, {"MASTER_ADDR", "localhost"}}),
     "WORLD_SIZE, RANK and MASTER_ADDR: node 0 of 3 at [::]:23456"},
    {"pai_dlc", with(kPyTorchJob, {{"MASTER_ADDR", "dlc18isgeayd-master-0"}, {"NPROC_PER_NODE", "8"}}),
     "WORLD_SIZE, RANK and MASTER_ADDR: node 1 of 3 at dlc18isgeayd-master-0:23456, 8 ranks"},
    {"ipv6", with(kPyTorchJob, {{"MASTER_ADDR", "fd00::17"}}),
     "WORLD_SIZE, RANK and MASTER_ADDR: node 1 of 3 at [fd00::17]:23456"},
    {"pytorch_job_alone", with(kPyTorchJob, {{"WORLD_SIZE", "1"}, {"RANK", "0"}}),
     "WORLD_SIZE, RANK and MASTER_ADDR: node 0 of 1"},
    {"rank_beyond", with(kPyTorchJob, {{"RANK", "3"}}), "refused: RANK=3"},
    {"no_master", with(kPyTorchJob, {{"MASTER_ADDR", ""}}), "refused: MASTER_ADDR"},
    {"bad_port", with(kPyTorchJob, {{"MASTER_PORT", "http"}}), "refused: MASTER_PORT=http"},
    {"bad_world", with(kPyTorchJob, {{"WORLD_SIZE", "-3"}}), "refused: WORLD_SIZE=-3"},
    {"rank_of_torchrun", with(kPyTorchJob, {{"LOCAL_RANK", "0"}}), "nothing"},
    {"rank_of_a_job", with(kSlurm, {{"TORCHELASTIC_RUN_ID", "x"}}), "nothing"},
    {"a_rank_alone", {{"RANK", "7"}}, "nothing"},
    {"kubeflow", kKubeflow, "PET_NNODES: node 1 of 3 at train-master-0:23456, 4 ranks"},
    {"kubeflow_that_counts_ranks", with(kKubeflow, {{"WORLD_SIZE", "12"}, {"RANK", "4"}}),
     "PET_NNODES: node 1 of 3 at train-master-0:23456, 4 ranks"},
    {"kubeflow_contradiction", with(kKubeflow, {{"WORLD_SIZE", "5"}}), "refused: WORLD_SIZE=5"},
    {"torchrun_endpoint",
     {{"PET_NNODES", "2:2"}, {"PET_RDZV_ENDPOINT", "w-0:2222"}, {"PET_NPROC_PER_NODE", "auto"}},
     "PET_NNODES: node -1 of 2 at w-0:2222"},
    {"torchrun_range", {{"PET_NNODES", "1:4"}, {"PET_RDZV_ENDPOINT", "w-0:2222"}}, "refused: PET_NNODES=1:4"},
    {"torchrun_without_a_place", {{"PET_NNODES", "2"}}, "refused: PET_MASTER_ADDR"},
    {"torchrun_words", with(kKubeflow, {{"PET_NPROC_PER_NODE", "many"}}), "refused: PET_NPROC_PER_NODE=many"},
    {"indexed_job", kIndexedJob, "SKYTRAIN_NODES: node 2 of 3 at job-0.svc:29400"},
    {"indexed_job_beyond", with(kIndexedJob, {{"JOB_COMPLETION_INDEX", "3"}}), "refused: JOB_COMPLETION_INDEX=3"},
    {"indexed_job_without_a_place", with(kIndexedJob, {{"SKYTRAIN_JOIN", ""}}), "refused: SKYTRAIN_JOIN"},
    {"ours_before_slurms", with(kSlurm, kIndexedJob), "SKYTRAIN_NODES: node 2 of 3 at job-0.svc:29400"},
    {"tencent", kTencent, "HOST_NUM, INDEX and CHIEF_IP: node 1 of 2 at 10.1.2.3:29400, 8 ranks"},
    {"tencent_beyond", with(kTencent, {{"INDEX", "2"}}), "refused: INDEX=2"},
};

TEST_P(LaunchEnvironment, IsRead) { EXPECT_EQ(found(GetParam().environment), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(Of, LaunchEnvironment, testing::ValuesIn(kCases),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(SlurmHosts, AreThoseThatScontrolPrints) {
  const auto text = [](const char* list) {
    const auto hosts = expand_slurm_hosts(list);
    return hosts ? join(*hosts, " ") : "refused";
  };
  EXPECT_EQ(text("n1"), "n1");
  EXPECT_EQ(text("n1,n2"), "n1 n2");
  EXPECT_EQ(text("n[1-3]"), "n1 n2 n3");
  EXPECT_EQ(text("n[08-11]"), "n08 n09 n10 n11");
  EXPECT_EQ(text("n[1,3-4,007]x"), "n1x n3x n4x n007x");
  EXPECT_EQ(text("login,gpu[1-2],r[1-2]n[1-2]"), "login gpu1 gpu2 r1n1 r1n2 r2n1 r2n2");
  EXPECT_EQ(text("n[98-101]"), "n98 n99 n100 n101");
  EXPECT_EQ(text("ip-10-0-0-[5-6]"), "ip-10-0-0-5 ip-10-0-0-6");
  EXPECT_EQ(expand_slurm_hosts("n[1-65536]")->size(), 65536U);
  for (const char* list : {"", ",", "n1,", ",n1", "n[", "n]", "n[]", "n[1", "n[1-]", "n[-1]", "n[3-1]", "n[a-b]",
                           "n[1-2", "n[[1-2]]", "n1 n2", "n[1-65537]", "n[1-999]m[1-999]", "n[1-99999999999]"}) {
    EXPECT_EQ(text(list), "refused") << list;
  }
}

}  // namespace
}  // namespace skytrain::launch
