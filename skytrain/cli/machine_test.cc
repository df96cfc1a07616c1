#include "skytrain/cli/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skytrain::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kCpuinfo =
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz\n"
    "flags\t\t: fpu avx avx2 fma avx512f avx512_vnni amx_bf16\n\nprocessor\t: 1\nmodel name\t: other\n";

TEST(Machine, ReadsTheCpuOfTheFirstProcessor) {
  EXPECT_EQ(cpu_model(kCpuinfo), "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz");
  EXPECT_THAT(cpu_features(kCpuinfo), ElementsAre("avx", "avx2", "fma", "avx512f", "avx512_vnni", "amx_bf16"));
}

TEST(Machine, OfACpuinfoWithoutTheseKeysNothingIsKnown) {
  EXPECT_EQ(cpu_model("processor\t: 0\nBogoMIPS\t: 243.75\n"), "");
  EXPECT_THAT(cpu_features("processor\t: 0\n"), IsEmpty());
}

TEST(Machine, ThisOneHasCoresMemoryAndALibc) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_bytes, 0u);
  EXPECT_GE(machine.memory_bytes, machine.memory_available_bytes);
  EXPECT_FALSE(machine.glibc.empty());
}

}  // namespace
}  // namespace skytrain::cli
