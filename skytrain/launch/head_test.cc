// The head's door: what strangers can and can't do to it, over real sockets.
#include "skytrain/launch/head.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/socket.h"
#include "skytrain/launch/meeting.h"

namespace skytrain::launch {
namespace {

const JobKey kKey("a key of the job, long enough", "test");
constexpr double kPatience = 20;

double now() { return Clock::real().monotonic_seconds(); }

class HeadDoor : public testing::Test {
 protected:
  void SetUp() override {
    SocketAddress address = resolve({"127.0.0.1", 0}).at(0);
    Fd listener = listen_on(address);
    ASSERT_TRUE(listener);
    address_ = local_address(listener);
    Coordinator::Options coordinator;
    coordinator.nodes = 2;
    coordinator.free_port = [] { return 1; };
    message::Join join;
    join.nodes = 2;
    head_ = std::make_unique<Head>(Head::Options{coordinator, kKey, std::move(listener), 0.3, 4}, join);
    link_ = head_->local_link();
  }
  void TearDown() override {
    link_.reset();
    head_.reset();
  }

  FrameStream connect() {
    FrameStream stream(start_connect(address_), kNodeFrameBytes);
    pollfd poll_fd{stream.fd(), POLLOUT, 0};
    ::poll(&poll_fd, 1, 10000);
    return stream;
  }
  // The next frame; "" when the head has closed.
  static std::string next(FrameStream& stream) {
    const double end = now() + kPatience;
    while (now() < end) {
      if (const auto frame = stream.next()) return *frame;
      pollfd poll_fd{stream.fd(), POLLIN, 0};
      ::poll(&poll_fd, 1, 1000);
      if (!stream.read_some()) return stream.next().value_or("");
    }
    ADD_FAILURE() << "the head says nothing";
    return "";
  }
  // A line of the head for its terminal.
  std::string note() {
    const double end = now() + kPatience;
    while (now() < end) {
      while (const auto message = link_->take()) {
        if (const auto* note = std::get_if<message::Note>(&*message)) return note->text;
      }
      pollfd poll_fd{link_->fd(), POLLIN, 0};
      ::poll(&poll_fd, 1, 1000);
    }
    return "";
  }
  // A member that has the key.
  std::pair<FrameStream, Seals> member() {
    FrameStream stream = connect();
    MemberHandshake handshake(kKey);
    while (!handshake.done() && !handshake.refusal()) {
      const std::string reply = handshake.answer(next(stream));
      if (reply.empty()) continue;
      stream.push(reply);
      stream.write_some();
    }
    EXPECT_TRUE(handshake.done());
    return {std::move(stream), handshake.seals()};
  }
  static void send(FrameStream& stream, const std::string& frame) {
    stream.push(frame);
    stream.write_some();
  }
  static message::Join join() {
    message::Join join;
    join.nodes = 2;
    join.host = "other";
    return join;
  }
  // The head goes on as if nothing had been.
  void expect_open() {
    auto [stream, seals] = member();
    send(stream, seals.out.close(encode(join())));
    EXPECT_TRUE(std::holds_alternative<message::Welcome>(decode_node_message(seals.in.open(next(stream)))));
    EXPECT_TRUE(std::holds_alternative<message::Start>(decode_node_message(seals.in.open(next(stream)))));
  }

  SocketAddress address_;
  std::unique_ptr<Head> head_;
  std::unique_ptr<HeadLink> link_;
};

TEST_F(HeadDoor, LetsInWhoHasTheKey) { expect_open(); }

TEST_F(HeadDoor, RefusesAnotherKeyAndGoesOn) {
  FrameStream stream = connect();
  MemberHandshake handshake(JobKey("another key, long enough too", "test"));
  send(stream, handshake.answer(next(stream)));
  EXPECT_EQ(next(stream), R"({"refused":"key"})");
  EXPECT_EQ(next(stream), "");
  EXPECT_EQ(note(), "refused a connection from 127.0.0.1: its job key is another one");
  expect_open();
}

TEST_F(HeadDoor, RefusesAnotherVersionByNumber) {
  FrameStream stream = connect();
  next(stream);
  send(stream, R"({"skytrain_run": 9})");
  EXPECT_EQ(next(stream), R"({"refused":"version"})");
  EXPECT_NE(note().find("version 9"), std::string::npos);
  expect_open();
}

TEST_F(HeadDoor, DropsGarbage) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, '\0'),
                                   std::string("\x05\0\0\0hello", 9), std::string("\x16\x03\x01\x02", 4)}) {
    FrameStream stream = connect();
    ASSERT_GT(::send(stream.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    next(stream);  // the challenge
    EXPECT_EQ(next(stream), "");
  }
  EXPECT_NE(note().find("refused a connection from 127.0.0.1: it "), std::string::npos);
  expect_open();
}

TEST_F(HeadDoor, DropsWhoSpeaksSlowlyAndManyWhoSayNothing) {
  FrameStream slow = connect();
  next(slow);
  ::send(slow.fd(), "\0\x02\0\0", 4, MSG_NOSIGNAL);  // 512 bytes are to come
  const double begin = now();
  while (now() - begin < kPatience) {  // a byte now and then does not buy time
    if (::send(slow.fd(), "x", 1, MSG_NOSIGNAL) < 0) break;
    pollfd poll_fd{slow.fd(), POLLIN, 0};
    if (::poll(&poll_fd, 1, 20) > 0 && !slow.read_some()) break;
  }
  EXPECT_GT(now() - begin, 0.2);
  EXPECT_LT(now() - begin, 5);
  EXPECT_EQ(note(), "refused a connection from 127.0.0.1: it did not say who it is");
  std::vector<FrameStream> many;
  many.reserve(30);
  for (int i = 0; i < 30; ++i) many.push_back(connect());
  expect_open();
}

TEST_F(HeadDoor, ARepeatedFrameEndsTheConnection) {
  auto [stream, seals] = member();
  const std::string frame = seals.out.close(encode(message::Alive{}));
  send(stream, frame);
  send(stream, frame);
  EXPECT_EQ(next(stream), "");
  expect_open();
}

TEST_F(HeadDoor, ASealedFrameThatIsNoMessageEndsTheConnection) {
  for (const char* text : {"", "{}", "[1]", R"({"type":"join"})", R"({"type":"nonsense"})",
                           R"({"type":"ended","attempt":1e99,"orderly":true})"}) {
    auto [stream, seals] = member();
    send(stream, seals.out.close(text));
    EXPECT_EQ(next(stream), "") << text;
  }
  expect_open();
}

TEST_F(HeadDoor, ALongFrameIsNotWaitedFor) {
  auto [stream, seals] = member();
  const std::string header("\xff\xff\xff\x7f", 4);
  ::send(stream.fd(), header.data(), header.size(), MSG_NOSIGNAL);
  EXPECT_EQ(next(stream), "");
}

TEST(NodeMessages, AreReadAsTheyWereWritten) {
  message::End end;
  end.kind = 2;
  end.has_failure = true;
  end.failure.rank = 5;
  end.failure.end.status = {true, 9};
  end.failure.last_words = "Wörter \xff";
  end.failure.host = "h";
  const NodeMessage read = decode_node_message(encode(end));
  const auto& again = std::get<message::End>(read);
  EXPECT_EQ(again.failure.rank, 5);
  EXPECT_TRUE(again.failure.end.status.signalled);
  EXPECT_EQ(again.failure.end.status.code, 9);
  EXPECT_EQ(again.failure.last_words, "Wörter \uFFFD");
  EXPECT_THROW(decode_node_message(R"({"type":"welcome","node_timeout":"x"})"), Error);
}

}  // namespace
}  // namespace skytrain::launch
