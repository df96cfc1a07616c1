#include "skytrain/topology/default_interface.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"

namespace skytrain::topology {
namespace {

// A host with containers: two uplinks, of which eth1 has the lower metric, a VPN, and docker0.
constexpr const char* kRoutes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
    "eth1\t00000000\t0101000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"  // 172.17.0.0/16
    "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"     // 10.0.0.0/24
    "ib0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"      // 192.168.2.0/24
    "tun0\t0700000A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n"     // 10.0.0.7/32
    "eth2\t00000000\t00000000\t0200\t0\t0\t1\t00000000\t0\t0\t0\n";    // unreachable
constexpr const char* kRoutes6 =
    "fd000000000000000000000000000000 10 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 "
    "00000001 00000000 00000001     ib0\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 "
    "00000001 00000000 00000003     eth6\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff "
    "00000001 00000000 00200200       lo\n";

std::string to(const RouteTables& routes, std::string_view address = "", std::string_view wanted = "") {
  const auto chosen = default_interface(routes, address, wanted);
  return chosen ? chosen->name : "none";
}

TEST(DefaultInterface, IsThatOfTheDefaultRouteWithTheLowestMetric) {
  EXPECT_EQ(to({kRoutes, ""}), "eth1");
  EXPECT_EQ(to({kRoutes, kRoutes6}), "eth1");
  EXPECT_EQ(default_interface({kRoutes, ""})->reason, "the default route goes through it");
}

TEST(DefaultInterface, IsIpv6sWhereIpv4HasNone) {
  EXPECT_EQ(to({"", kRoutes6}), "eth6");
  EXPECT_EQ(default_interface({"", kRoutes6})->reason, "the default route of IPv6 goes through it");
}

TEST(DefaultInterface, ToAnAddressTheLongestPrefixWins) {
  EXPECT_EQ(to({kRoutes, kRoutes6}, "10.0.0.9"), "eth0");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "10.0.0.7"), "tun0");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "192.168.2.200"), "ib0");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "172.17.3.4"), "docker0");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "8.8.8.8"), "eth1");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "::ffff:192.168.2.1"), "ib0");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "fd00::5"), "ib0");
  EXPECT_EQ(to({kRoutes, kRoutes6}, "2001:db8::1"), "eth6");
  EXPECT_EQ(to({kRoutes, ""}, "2001:db8::1"), "none");
  EXPECT_EQ(to({kRoutes, ""}, "127.0.0.1"), "lo");
  EXPECT_EQ(to({"", ""}, "::1"), "lo");
}

TEST(DefaultInterface, IsNeverOneMadeForContainers) {
  const std::string text =
      "docker0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
      "lo\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
  EXPECT_EQ(to({text, ""}), "none");
  EXPECT_EQ(to({text + "bond0\t00000000\t0100000A\t0003\t0\t0\t900\t00000000\t0\t0\t0\n", ""}), "bond0");
  for (const char* name : {"lo", "docker0", "veth12ab", "br-0123456789ab", "virbr0", "cni0"}) {
    EXPECT_TRUE(is_virtual_interface(name)) << name;
  }
  for (const char* name : {"eth0", "enp1s0", "ib0", "bond0", "br0", "loop"})
    EXPECT_FALSE(is_virtual_interface(name)) << name;
}

TEST(DefaultInterface, IsTheOneThatWasAskedFor) {
  EXPECT_EQ(to({kRoutes, kRoutes6}, "10.0.0.9", "ib1"), "ib1");
  for (const char* name : {"eth0,eth1", "a b", "../etc", "sixteen-letters-"}) {
    EXPECT_THROW(default_interface({}, "", name), Error) << name;
  }
}

TEST(DefaultInterface, TextThatIsNoTableHasNoRoute) {
  for (const char* text : {"", "\n\n", "eth0 zz zz zz\n", "eth0\t00000000\t0\t0003\t0\t0\t0\n",
                           "eth0\t00000000000\t0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"}) {
    EXPECT_EQ(to({text, text}), "none") << text;
    EXPECT_EQ(to({text, text}, "10.0.0.1"), "none") << text;
  }
  for (const char* address : {"node1", "10.0.0", "10.0.0.256", "fe80::1%eth0", "12345::", "1 "}) {
    EXPECT_THROW(default_interface({kRoutes, ""}, address), Error) << address;
  }
}

}  // namespace
}  // namespace skytrain::topology
