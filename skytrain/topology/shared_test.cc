// Logs that people sent, from the data folder beside the repository (SKYTRAIN_SHARED). CTest runs these as
// topology.shared (label `shared`); they fail where the folder is missing.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/topology/binding.h"
#include "skytrain/topology/nvidia_smi_topo.h"

namespace skytrain::topology {
namespace {

std::string logs() {
  const char* folder = std::getenv("SKYTRAIN_SHARED");
  return (folder != nullptr && *folder != '\0' ? std::string(folder) : "../shared") + "/data/logs/";
}

Topology log_of(const std::string& name) {
  return parse_nvidia_smi_topo(FileSystem::real().read_file(logs() + name), name);
}

TEST(DISABLED_Shared, TablesOfNvidiaSmiAreRead) {
  const Topology one = log_of("31_topo_single_p4_na.txt");
  EXPECT_EQ(one.gpus.size(), 1);
  EXPECT_EQ(cpu_list_text(plan_binding(one, 1).ranks[0].cpus), "0-7");
  const Topology two = log_of("32_topo_two_5090_phb.txt");
  ASSERT_EQ(two.gpus.size(), 2);
  EXPECT_EQ(two.connection(0, 1).link, Link::kPhb);
  EXPECT_EQ(two.gpus[1].numa_node, 0);
  EXPECT_EQ(cpu_list_text(plan_binding(two, 2).ranks[1].cpus), "32-63");
}

TEST(DISABLED_Shared, OtherLogsAreRefused) {
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(logs())) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("31_", 0) == 0 || name.rfind("32_", 0) == 0) continue;
    EXPECT_THROW(log_of(name), Error) << name;
    ++refused;
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace skytrain::topology
