#include "skytrain/proto/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "skytrain/base/error.h"

namespace skytrain::proto {
namespace {

std::string frame_of(const std::string& body) {
  std::string frame(4, '\0');
  for (int i = 0; i < 4; ++i) frame[i] = static_cast<char>(body.size() >> (8 * i) & 0xff);
  return frame + body;
}

void write_all(int fd, const std::string& bytes) {
  ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// A channel and the raw descriptor at its other end.
struct Ends {
  Ends() {
    auto [a, b] = stream_socket_pair();
    channel = std::make_unique<Channel>(std::move(a));
    raw = std::move(b);
  }
  std::unique_ptr<Channel> channel;
  Fd raw;
};

std::string problem_of_receive(Channel& channel) {
  try {
    channel.receive(5);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.problem();
  }
  return "";
}

TEST(Channel, DeliversMessagesInOrder) {
  auto [a, b] = stream_socket_pair();
  Channel sender(std::move(a)), receiver(std::move(b));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sender.send({{"i", i}}));
  for (int i = 0; i < 100; ++i) {
    const auto message = receiver.receive(5);
    ASSERT_TRUE(message);
    EXPECT_EQ((*message)["i"], i);
  }
  EXPECT_FALSE(receiver.receive(0));
  EXPECT_FALSE(receiver.closed());
}

TEST(Channel, PutsTogetherAFrameThatComesByteByByte) {
  Ends ends;
  const std::string frame = frame_of(R"({"type":"stop"})");
  for (size_t i = 0; i + 1 < frame.size(); ++i) {
    write_all(ends.raw.get(), frame.substr(i, 1));
    ASSERT_FALSE(ends.channel->receive(0)) << "after " << i + 1 << " bytes";
  }
  write_all(ends.raw.get(), frame.substr(frame.size() - 1));
  const auto message = ends.channel->receive(0);
  ASSERT_TRUE(message);
  EXPECT_EQ((*message)["type"], "stop");
}

TEST(Channel, DeliversSeveralFramesOfOneReadOneByOne) {
  Ends ends;
  write_all(ends.raw.get(), frame_of(R"({"a":1})") + frame_of(R"({"a":2})") + frame_of(R"({"a":3})").substr(0, 6));
  EXPECT_EQ((*ends.channel->receive(0))["a"], 1);
  EXPECT_EQ((*ends.channel->receive(0))["a"], 2);
  EXPECT_FALSE(ends.channel->receive(0));
  write_all(ends.raw.get(), frame_of(R"({"a":3})").substr(6));
  EXPECT_EQ((*ends.channel->receive(0))["a"], 3);
}

TEST(Channel, SendsAFrameLongerThanTheSocketsBufferInSeveralWrites) {
  auto [a, b] = stream_socket_pair();
  const int small = 4096;
  ASSERT_EQ(setsockopt(a.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  ASSERT_EQ(fcntl(a.get(), F_SETFL, O_NONBLOCK), 0);  // every send is a short one, and some find no room at all
  Channel sender(std::move(a)), receiver(std::move(b));
  const std::string text(3 << 20, 'x');
  std::thread thread([&] { EXPECT_TRUE(sender.send({{"text", text}})); });
  const auto message = receiver.receive(30);
  thread.join();
  ASSERT_TRUE(message);
  EXPECT_EQ((*message)["text"].get<std::string>(), text);
}

TEST(Channel, FramesOfSeveralThreadsDoNotMix) {
  auto [a, b] = stream_socket_pair();
  Channel sender(std::move(a)), receiver(std::move(b));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(sender.send({{"thread", t}, {"i", i}, {"pad", std::string(5000, 'p')}}));
    });
  }
  int next[4] = {};
  for (int i = 0; i < 200; ++i) {
    const auto message = receiver.receive(30);
    ASSERT_TRUE(message);
    EXPECT_EQ((*message)["i"], next[(*message)["thread"].get<int>()]++);
  }
  for (auto& thread : threads) thread.join();
}

TEST(Channel, TimesOutWhileThePeerIsSilent) {
  Ends ends;
  EXPECT_FALSE(ends.channel->receive(0.01));
  EXPECT_FALSE(ends.channel->closed());
}

TEST(Channel, RefusesAFrameThatAnnouncesTooMuchBeforeReadingIt) {
  Ends ends;
  write_all(ends.raw.get(), std::string("\x01\x00\x00\x04", 4));  // 64 MiB + 1
  EXPECT_EQ(problem_of_receive(*ends.channel), "a frame announces 67108865 bytes, at most 67108864 are allowed");
}

TEST(Channel, RefusesGarbage) {
  Ends ends;
  write_all(ends.raw.get(), "GET / HTTP/1.1\r\n");
  EXPECT_NE(problem_of_receive(*ends.channel).find("at most"), std::string::npos);
}

TEST(Channel, RefusesAFrameThatIsNoJsonObject) {
  for (const std::string body : {"{\"a\":", "[1]", "7", "", "\xff\xfe"}) {
    Ends ends;
    write_all(ends.raw.get(), frame_of(body));
    EXPECT_NE(problem_of_receive(*ends.channel).find("a frame is "), std::string::npos) << body;
  }
}

TEST(Channel, RefusesToSendMoreThanAFrameHolds) {
  Ends ends;
  EXPECT_THROW(ends.channel->send({{"text", std::string(kMaxFrameBytes, 'x')}}), Error);
}

TEST(Channel, DeliversThePeersLastWordsAndThenSaysThatItHasGone) {
  Ends ends;
  write_all(ends.raw.get(), frame_of(R"({"type":"failed"})"));
  ends.raw.reset();
  EXPECT_FALSE(ends.channel->send({{"type", "stop"}}));  // no SIGPIPE either
  EXPECT_TRUE(ends.channel->closed());
  const auto last = ends.channel->receive(5);
  ASSERT_TRUE(last);
  EXPECT_EQ((*last)["type"], "failed");
  EXPECT_FALSE(ends.channel->receive(5));
  EXPECT_TRUE(ends.channel->closed());
}

TEST(Channel, DeliversThePeersLastWordsWhenItWentWithoutReadingOurs) {
  Ends ends;
  ASSERT_TRUE(ends.channel->send({{"type", "stop"}}));
  write_all(ends.raw.get(), frame_of(R"({"type":"failed"})"));
  ends.raw.reset();  // with unread bytes: the kernel reports a reset
  ASSERT_TRUE(ends.channel->receive(5));
  EXPECT_FALSE(ends.channel->receive(5));
  EXPECT_TRUE(ends.channel->closed());
}

TEST(Channel, TakesHalfAFrameFromADyingPeerForItsDeath) {
  Ends ends;
  write_all(ends.raw.get(), frame_of(R"({"type":"failed"})").substr(0, 9));
  ends.raw.reset();
  EXPECT_FALSE(ends.channel->receive(5));
  EXPECT_TRUE(ends.channel->closed());
}

TEST(Channel, ReplacesBytesThatAreNotUtf8) {
  auto [a, b] = stream_socket_pair();
  Channel sender(std::move(a)), receiver(std::move(b));
  ASSERT_TRUE(sender.send({{"line", "caf\xe9"}}));
  EXPECT_EQ((*receiver.receive(5))["line"], "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace skytrain::proto
