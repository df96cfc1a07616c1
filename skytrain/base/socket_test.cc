#include "skytrain/base/socket.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"

namespace skytrain {
namespace {

TEST(HostPort, IsReadAsPeopleWriteIt) {
  const auto text = [](const std::string& written) { return parse_host_port(written, 29400, "--join").text(); };
  EXPECT_EQ(text("node1"), "node1:29400");
  EXPECT_EQ(text("node1:5"), "node1:5");
  EXPECT_EQ(text("10.0.0.1:65535"), "10.0.0.1:65535");
  EXPECT_EQ(text("[::1]"), "[::1]:29400");
  EXPECT_EQ(text("[fe80::1%eth0]:80"), "[fe80::1%eth0]:80");
}

TEST(HostPort, WhatIsNoneIsRefused) {
  for (const char* written : {"", ":80", "host:", "host:0", "host:65536", "host:-1", "host:8x", "::1", "fd00::1:29400",
                              "[::1", "[]:80", "[::1]80", "a b:80", "http://host:80", "user@host"}) {
    EXPECT_THROW(parse_host_port(written, 29400, "--join"), Error) << written;
  }
}

TEST(SocketAddress, OfThisMachineIsKnown) {
  EXPECT_TRUE(is_own_address(resolve({"127.0.0.3", 1}).at(0)));
  EXPECT_FALSE(is_own_address(resolve({"192.0.2.1", 1}).at(0)));  // TEST-NET-1
  EXPECT_TRUE(resolve({"127.0.0.3", 1}).at(0).is_loopback());
  EXPECT_FALSE(resolve({"192.0.2.1", 1}).at(0).is_loopback());
  EXPECT_EQ(interface_address("lo").host(), "127.0.0.1");
  EXPECT_THROW(interface_address("no-such-interface"), Error);
}

TEST(Socket, AnIpv4PeerOfADualStackListenerIsNamedAsIpv4) {
  const Fd listener = listen_on(any_address(0));
  ASSERT_TRUE(listener);
  SocketAddress target = resolve({"127.0.0.1", local_address(listener).port()}).at(0);
  const Fd client = start_connect(target);
  ASSERT_TRUE(client);
  Fd peer;
  for (int i = 0; i < 10000 && !peer; ++i) peer = accept_from(listener);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer_address(peer).host(), "127.0.0.1");
  EXPECT_EQ(local_address(peer).host(), "127.0.0.1");
  EXPECT_TRUE(local_address(peer).is_loopback());
}

TEST(Socket, TwoCannotListenAtOnePlace) {
  const Fd first = listen_on(resolve({"127.0.0.1", 0}).at(0));
  EXPECT_FALSE(listen_on(local_address(first)));
}

}  // namespace
}  // namespace skytrain
