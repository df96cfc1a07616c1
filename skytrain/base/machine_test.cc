#include "skytrain/base/machine.h"

#include <gtest/gtest.h>

namespace skytrain {
namespace {

TEST(Machine, ReadsMemory) {
  EXPECT_EQ(meminfo_bytes("MemTotal:       24683108 kB\nMemFree: 1 kB\n", "MemTotal"), 24683108ull * 1024);
  EXPECT_EQ(meminfo_bytes("MemTotal: 5 kB\n", "MemAvailable"), 0u);
}

// In a container with a quota of two CPUs on a 64-core host, training started 64 threads and was throttled.
TEST(Machine, TheContainersQuotaCounts) {
  EXPECT_EQ(cgroup_cpus("200000 100000\n"), 2);
  EXPECT_EQ(cgroup_cpus("150000 100000\n"), 2);
  EXPECT_EQ(cgroup_cpus("max 100000\n"), 0);
  EXPECT_EQ(cgroup_cpus(""), 0);
}

TEST(Machine, TheContainersMemoryCounts) {
  EXPECT_EQ(within_cgroup_memory(1000, "max\n", "300\n"), 1000u);
  EXPECT_EQ(within_cgroup_memory(1000, "", ""), 1000u);
  EXPECT_EQ(within_cgroup_memory(1000, "800\n", "300\n"), 500u);
  EXPECT_EQ(within_cgroup_memory(1000, "5000\n", "300\n"), 1000u);
  EXPECT_EQ(within_cgroup_memory(1000, "800\n", "900\n"), 0u);  // above the limit for a moment
}

TEST(Machine, ValuesAreFoundByTheirWholeKey) {
  EXPECT_EQ(keyed_value("ID_LIKE=x\nID=debian\nNAME=\"Debian GNU\"\n", "ID", '='), "debian");
  EXPECT_EQ(keyed_value("NAME=\"Debian GNU\"\n", "NAME", '='), "Debian GNU");
  EXPECT_EQ(keyed_value("NAME\n", "NAME", '='), "");
}

TEST(Machine, ThisOneHasCoresAndMemory) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_GE(total_memory_bytes(), available_memory_bytes());
}

}  // namespace
}  // namespace skytrain
