#include "skytrain/topology/nccl_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/topology/topology_test_data.h"

namespace skytrain::topology {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "set NCCL_IB_DISABLE=1"; the reason is looked at apart.
std::vector<std::string> settings_of(const NcclAdvice& advice) {
  std::vector<std::string> out;
  for (const NcclSetting& each : advice.settings) {
    EXPECT_FALSE(each.reason.empty()) << each.name;
    out.push_back(std::string(strength_name(each.strength)) + " " + each.name +
                  (each.value.empty() ? "" : "=" + each.value));
  }
  return out;
}

std::string reason_of(const NcclAdvice& advice, const std::string& name) {
  for (const NcclSetting& each : advice.settings) {
    if (each.name == name) return each.reason;
  }
  return "no such setting";
}

TEST(NcclAdvice, TakesTheNicsNearTheGpusOnly) {
  const NcclAdvice advice = advise_nccl(eight_gpu_machine(), {});
  EXPECT_THAT(settings_of(advice), ElementsAre("set NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_4,mlx5_5",
                                               "leave NCCL_NET_GDR_LEVEL", "leave NCCL_P2P_LEVEL"));
  EXPECT_EQ(reason_of(advice, "NCCL_IB_HCA"), "nearest to the GPUs; farther: mlx5_bond_0");
  EXPECT_THAT(reason_of(advice, "NCCL_P2P_LEVEL"), HasSubstr("all pairs"));
}

TEST(NcclAdvice, ANicThatIsDownIsLeftOutAndNamed) {
  Topology topology = eight_gpu_machine();
  topology.nics[4].active = false;
  EXPECT_EQ(reason_of(advise_nccl(topology, {}), "NCCL_IB_HCA"), "down: mlx5_bond_0");
  for (Nic& nic : topology.nics) nic.active = false;
  EXPECT_THAT(settings_of(advise_nccl(topology, {})), Contains("set NCCL_IB_DISABLE=1"));
}

TEST(NcclAdvice, NothingIsSetWhereAllNicsAreNear) {
  Topology topology = eight_gpu_machine();
  topology.connect(0, 12, {Link::kPix});
  topology.connect(0, 8, {Link::kPix});
  EXPECT_THAT(settings_of(advise_nccl(topology, {})), Contains("leave NCCL_IB_HCA"));
}

TEST(NcclAdvice, WithoutRdmaThereAreSockets) {
  Surroundings here;
  here.interface = "eth0";
  here.interface_reason = "the default route goes through it";
  here.shared_memory_bytes = uint64_t{64} << 30;
  const NcclAdvice advice = advise_nccl(two_sockets_four_gpus_each(), here);
  EXPECT_THAT(settings_of(advice),
              ElementsAre("set NCCL_SOCKET_IFNAME==eth0", "set NCCL_IB_DISABLE=1", "try NCCL_P2P_LEVEL=PHB"));
  EXPECT_THAT(advice.notes, IsEmpty());
}

TEST(NcclAdvice, RdmaThatTheContainerHidesIsNotUsed) {
  Surroundings here;
  here.verbs_devices = false;
  const NcclAdvice advice = advise_nccl(eight_gpu_machine(), here);
  EXPECT_THAT(settings_of(advice), Contains("set NCCL_IB_DISABLE=1"));
  EXPECT_THAT(advice.notes, Contains(HasSubstr("--device=/dev/infiniband")));
}

TEST(NcclAdvice, SharedMemoryIsGivenUpOnlyWhenItIsTooSmallAndSaysItsSize) {
  const auto with = [](std::optional<uint64_t> bytes) {
    Surroundings here;
    here.shared_memory_bytes = bytes;
    return advise_nccl(two_sockets_four_gpus_each(), here);
  };
  EXPECT_THAT(reason_of(with(uint64_t{64} << 20), "NCCL_SHM_DISABLE"),
              HasSubstr("/dev/shm has 64.0 MiB, too little for 8 GPUs"));
  EXPECT_THAT(reason_of(with(0), "NCCL_SHM_DISABLE"), HasSubstr("/dev/shm is missing"));
  const NcclAdvice small = with(uint64_t{512} << 20);
  EXPECT_EQ(reason_of(small, "NCCL_SHM_DISABLE"), "no such setting");
  EXPECT_THAT(small.notes, ElementsAre(HasSubstr("/dev/shm has 512.0 MiB")));
  EXPECT_THAT(with(uint64_t{1} << 30).notes, IsEmpty());
  EXPECT_THAT(with({}).notes, IsEmpty());
}

TEST(NcclAdvice, PeerAccessThatTheDriverForbidsIsNotAdvised) {
  Topology topology = two_sockets_four_gpus_each();
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = 0; b < a; ++b) topology.connect(a, b, {Link::kPhb, 0, false});
  }
  EXPECT_THAT(settings_of(advise_nccl(topology, {})), Contains("leave NCCL_P2P_LEVEL"));
  topology.connect(0, 1, {Link::kPhb, 0, true});
  EXPECT_THAT(reason_of(advise_nccl(topology, {}), "NCCL_P2P_LEVEL"), HasSubstr("is allowed by the driver"));
}

TEST(NcclAdvice, ANicBehindTheCpuIsSomethingToTry) {
  Topology topology = eight_gpu_machine();
  for (size_t nic = 8; nic < 13; ++nic) topology.connect(3, nic, {Link::kNode});
  const NcclAdvice advice = advise_nccl(topology, {});
  EXPECT_THAT(settings_of(advice), Contains("try NCCL_NET_GDR_LEVEL=PHB"));
  EXPECT_THAT(reason_of(advice, "NCCL_NET_GDR_LEVEL"), HasSubstr("of GPU3 is"));
}

TEST(NcclAdvice, NamesThatTheLogDoesNotTellAreAskedFor) {
  std::string log = eight_gpus_four_nics();
  const NcclAdvice advice = advise_nccl(parse_nvidia_smi_topo(log.substr(0, log.find("NIC Legend")), "log"), {});
  EXPECT_EQ(reason_of(advice, "NCCL_IB_HCA"), "no such setting");
  EXPECT_THAT(advice.notes, Contains(HasSubstr("real names of NIC0, NIC1, NIC2, NIC3")));
}

TEST(NcclAdvice, EfaIsNotTakenForInfiniBand) {
  Topology topology = eight_gpu_machine();
  for (Nic& nic : topology.nics) nic.name = "rdmap" + nic.label;
  const NcclAdvice advice = advise_nccl(topology, {});
  EXPECT_THAT(settings_of(advice), ElementsAre("leave NCCL_P2P_LEVEL"));
  EXPECT_THAT(advice.notes, ElementsAre(HasSubstr("EFA")));
}

TEST(NcclAdvice, AMachineWithoutGpusNeedsNone) {
  Surroundings here;
  here.interface = "eth0";
  EXPECT_THAT(advise_nccl(read_synthetic("core:4 pu:1"), here).settings, IsEmpty());
}

}  // namespace
}  // namespace skytrain::topology
