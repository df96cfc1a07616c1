#include "skytrain/launch/coordinator.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

using Then = Coordinator::Out::Then;

message::Join join_of(const std::string& host, int node_rank = -1, int ranks = 2) {
  message::Join join;
  join.host = host;
  join.command = "c";
  join.nodes = 3;
  join.ranks = ranks;
  join.node_rank = node_rank;
  join.asked = node_rank >= 0;
  return join;
}

// A job of three nodes by default; the head is connection 0.
struct Job {
  explicit Job(int max_restarts = 0) {
    Coordinator::Options options;
    options.nodes = 3;
    options.max_restarts = max_restarts;
    options.join_timeout = 600;
    options.node_timeout = 30;
    options.address = "10.0.0.1:29400";
    options.free_port = [this] { return ++port; };
    options.run_id = "id";
    coordinator.emplace(options, clock, join_of("head", 0));
  }

  void join(int connection, const message::Join& join) {
    coordinator->connected(connection, str("10.0.0.", connection + 1), "10.0.0.1");
    coordinator->received(connection, join);
  }
  void join_all() {
    join(1, join_of("b"));
    join(2, join_of("c"));
  }
  void end_all(int attempt, bool orderly = true) {
    for (int i : {0, 1, 2}) coordinator->received(i, message::Ended{attempt, orderly});
    for (int i : {0, 1, 2}) coordinator->received(i, message::Settled{attempt, ""});
  }
  void fail(int connection, int attempt, int rank, double seconds_ago = 0) {
    message::Failing failing;
    failing.attempt = attempt;
    failing.failure.rank = rank;
    failing.failure.end.status = {false, 3};
    failing.seconds_ago = seconds_ago;
    coordinator->received(connection, failing);
  }

  // What has been sent since the last call.
  template <class M>
  std::map<int, M> sent() {
    for (auto& out : coordinator->take()) all.push_back(std::move(out));
    std::map<int, M> found;
    for (const auto& out : all) {
      if (const auto* message = std::get_if<M>(&out.message)) found[out.connection] = *message;
    }
    return found;
  }
  void forget() {
    coordinator->take();
    all.clear();
  }
  std::string notes() {
    sent<message::Note>();
    std::string text;
    for (const auto& out : all) {
      const auto* note = std::get_if<message::Note>(&out.message);
      if (note != nullptr && out.connection == 0) text += note->text + "\n";
    }
    return text;
  }
  JobEnd::Kind kind() { return static_cast<JobEnd::Kind>(sent<message::End>().at(0).kind); }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock.advance(1);
      coordinator->tick();
    }
  }

  FakeClock clock;
  int port = 20000;
  std::optional<Coordinator> coordinator;
  std::vector<Coordinator::Out> all;
};

TEST(Coordinator, StartsWhenAllAreThereWithRanksInOrderOfNodes) {
  Job job;
  job.join(1, join_of("b", -1, 1));
  EXPECT_TRUE(job.sent<message::Start>().empty());
  job.join(2, join_of("c", 1, 4));
  auto starts = job.sent<message::Start>();
  ASSERT_EQ(starts.size(), 3U);
  EXPECT_EQ(starts[0].node_rank, 0);
  EXPECT_EQ(starts[2].node_rank, 1) << "asked for";
  EXPECT_EQ(starts[1].node_rank, 2);
  EXPECT_EQ(starts[0].first_rank, 0);
  EXPECT_EQ(starts[2].first_rank, 2);
  EXPECT_EQ(starts[1].first_rank, 6);
  for (const auto& [connection, start] : starts) {
    EXPECT_EQ(start.world_size, 7);
    EXPECT_EQ(start.master_address, "10.0.0.1");
    EXPECT_EQ(start.master_port, 20001);
  }
}

TEST(Coordinator, RefusesByName) {
  const auto refusal = [](const message::Join& join) {
    Job job;
    job.join(1, join_of("b", 1));
    job.join(2, join);
    const auto refused = job.sent<message::Refused>();
    return refused.count(2) != 0 ? refused.at(2).what : "";
  };
  EXPECT_EQ(refusal(join_of("c", 2)), "");
  EXPECT_NE(refusal(join_of("c", 1)).find("--node-rank 1 is that of b (10.0.0.2) too"), std::string::npos);
  EXPECT_NE(refusal(join_of("c", 0)).find("is the head's"), std::string::npos);
  EXPECT_NE(refusal(join_of("c", 3)).find("is beyond --nodes"), std::string::npos);
  message::Join join = join_of("c");
  join.command = "d";
  EXPECT_NE(refusal(join).find("another command"), std::string::npos);
  join = join_of("c");
  join.nodes = 2;
  EXPECT_NE(refusal(join).find("--nodes is 2 there and 3"), std::string::npos);
  EXPECT_NE(refusal(join_of("c", -1, 0)), "");
  EXPECT_NE(refusal(join_of("c", -1, 1 << 30)), "");
}

TEST(Coordinator, EndsWhenAllHaveEnded) {
  Job job;
  job.join_all();
  job.coordinator->received(0, message::Ended{1, true});
  job.coordinator->received(1, message::Ended{1, true});
  EXPECT_TRUE(job.sent<message::AllEnded>().empty());
  job.coordinator->received(2, message::Ended{1, true});
  EXPECT_EQ(job.sent<message::AllEnded>().size(), 3U);
  EXPECT_TRUE(job.sent<message::AllEnded>().at(0).orderly);
  EXPECT_FALSE(job.coordinator->ended());
  for (int i : {0, 1, 2}) job.coordinator->received(i, message::Settled{1, ""});
  EXPECT_TRUE(job.coordinator->ended());
  EXPECT_EQ(job.kind(), JobEnd::Kind::kDone);
  for (const auto& out : job.all) {
    EXPECT_EQ(std::holds_alternative<message::End>(out.message), out.then == Then::kClose);
  }
}

TEST(Coordinator, TheEarliestFailureIsTheOne) {
  Job job;
  job.join_all();
  job.clock.advance(10);
  job.fail(1, 1, 3, 0.001);
  auto stops = job.sent<message::Stop>();
  ASSERT_EQ(stops.size(), 3U);
  EXPECT_EQ(stops[0].failure.rank, 3);
  EXPECT_EQ(stops[0].failure.node, 1);
  EXPECT_EQ(stops[0].failure.host, "b");
  job.clock.advance(0.01);
  job.fail(2, 1, 4, 0.5);  // it was first, and took longer to tell
  job.fail(0, 1, 0, 0);    // stopped by us
  job.end_all(1, false);
  const message::End end = job.sent<message::End>().at(1);
  EXPECT_EQ(end.failure.rank, 4);
  EXPECT_EQ(end.failure.node, 2);
  EXPECT_FALSE(job.sent<message::AllEnded>().at(0).orderly);
}

TEST(Coordinator, RestartsWithinOneBudgetAndKeepsNumbers) {
  Job job(2);
  job.join(1, join_of("b", 2));
  job.join(2, join_of("c"));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    auto starts = job.sent<message::Start>();
    ASSERT_EQ(starts.size(), 3U);
    EXPECT_EQ(starts[1].node_rank, 2);
    EXPECT_EQ(starts[2].node_rank, 1);
    EXPECT_EQ(starts[0].attempt, attempt);
    EXPECT_EQ(starts[0].restarts, attempt - 1);
    EXPECT_EQ(starts[0].master_port, 20000 + attempt);
    job.forget();
    job.fail(attempt % 3, attempt, 1);
    job.end_all(attempt, false);
  }
  EXPECT_TRUE(job.coordinator->ended());
  EXPECT_EQ(job.kind(), JobEnd::Kind::kFailed);
  EXPECT_EQ(job.sent<message::End>().at(2).restarts, 2);
}

TEST(Coordinator, MessagesOfAnEarlierAttemptCountForNothing) {
  Job job(1);
  job.join_all();
  job.fail(1, 1, 3);
  job.end_all(1, false);
  job.forget();
  job.fail(2, 1, 4);
  job.coordinator->received(0, message::Ended{1, true});
  EXPECT_TRUE(job.sent<message::Stop>().empty());
  job.end_all(2);
  EXPECT_EQ(job.kind(), JobEnd::Kind::kDone);
}

TEST(Coordinator, ALostNodeIsNamedAndEndsTheJob) {
  Job job;
  job.join_all();
  job.coordinator->gone(2, "it closed the connection");
  EXPECT_EQ(job.sent<message::Stop>().size(), 2U);
  for (int i : {0, 1}) job.coordinator->received(i, message::Ended{1, false});
  for (int i : {0, 1}) job.coordinator->received(i, message::Settled{1, ""});
  ASSERT_TRUE(job.coordinator->ended());
  const message::End end = job.sent<message::End>().at(1);
  EXPECT_EQ(name_of(end.failure), "node 2 (c, 10.0.0.3)");
  EXPECT_EQ(end.failure.cause_code, 7);
}

TEST(Coordinator, ALostNodeThatComesAgainHasItsNumber) {
  Job job(1);
  job.join(1, join_of("b"));
  job.join(2, join_of("c"));
  job.coordinator->gone(1, "x");
  for (int i : {0, 2}) job.coordinator->received(i, message::Ended{1, false});
  for (int i : {0, 2}) job.coordinator->received(i, message::Settled{1, ""});
  EXPECT_FALSE(job.coordinator->ended());
  job.forget();
  for (int i = 0; i < 100; ++i) {
    job.pass(1);
    job.coordinator->received(2, message::Alive{});
  }
  EXPECT_NE(job.notes().find("waiting for 1 of 3 nodes at 10.0.0.1:29400"), std::string::npos);
  job.join(7, join_of("b"));
  auto starts = job.sent<message::Start>();
  ASSERT_EQ(starts.size(), 3U);
  EXPECT_EQ(starts[7].node_rank, 1);
  EXPECT_EQ(starts[2].node_rank, 2);
  EXPECT_EQ(starts[0].restarts, 1);
}

TEST(Coordinator, ASpareTakesThePlaceOfALostNode) {
  Job job(1);
  job.join_all();
  job.join(3, join_of("d"));
  EXPECT_NE(job.notes().find("one more than the job needs"), std::string::npos);
  job.coordinator->gone(1, "x");
  job.forget();
  for (int i : {0, 2}) job.coordinator->received(i, message::Ended{1, false});
  for (int i : {0, 2}) job.coordinator->received(i, message::Settled{1, ""});
  EXPECT_EQ(job.sent<message::Start>().at(3).node_rank, 1);
  Job without;
  without.join_all();
  without.join(3, join_of("d"));
  EXPECT_EQ(without.sent<message::Refused>().count(3), 1U);
}

TEST(Coordinator, SilenceIsALossAndAPauseOfOurOwnIsNot) {
  Job job;
  job.join_all();
  job.clock.advance(500);  // this process was stopped
  job.coordinator->tick();
  EXPECT_TRUE(job.sent<message::Stop>().empty());
  for (int i = 0; i < 40; ++i) {
    job.pass(1);
    job.coordinator->received(1, message::Alive{});
  }
  ASSERT_EQ(job.sent<message::Stop>().size(), 2U);
  EXPECT_EQ(job.sent<message::Stop>().at(1).failure.cause, "lost: it has said nothing for 30.0 s");
  EXPECT_EQ(job.sent<message::Stop>().at(1).failure.node, 2);
}

TEST(Coordinator, WhoNeverComesEndsTheWait) {
  Job job;
  job.join(1, join_of("b"));
  for (int i = 0; i < 601; ++i) {
    job.coordinator->received(1, message::Alive{});
    job.pass(1);
  }
  ASSERT_TRUE(job.coordinator->ended());
  const message::End end = job.sent<message::End>().at(1);
  EXPECT_EQ(end.failure.cause, "1 of 3 nodes did not join within 10 min 00 s");
  EXPECT_EQ(end.failure.cause_code, 5);
  EXPECT_NE(job.notes().find("waiting for 1 of 3 nodes"), std::string::npos);
}

TEST(Coordinator, ANoticeGoesToTheOthersOnceUnlessItLeavesLessTime) {
  Job job(3);
  job.join_all();
  job.forget();
  job.coordinator->received(1, message::NoticeGiven{"SIGTERM", 30});
  EXPECT_EQ(job.sent<message::NoticeGiven>().size(), 2U);
  EXPECT_EQ(job.sent<message::NoticeGiven>().count(1), 0U);
  job.forget();
  job.coordinator->received(2, message::NoticeGiven{"SIGTERM", 30});
  EXPECT_TRUE(job.sent<message::NoticeGiven>().empty());
  job.coordinator->received(2, message::NoticeGiven{"SIGTERM", 5});
  EXPECT_EQ(job.sent<message::NoticeGiven>().size(), 2U);
  job.coordinator->received(0, message::Ended{1, true});
  EXPECT_EQ(job.sent<message::Ending>().size(), 2U);
  job.end_all(1);
  EXPECT_EQ(job.kind(), JobEnd::Kind::kInterrupted);
}

TEST(Coordinator, NothingIsStartedAgainAfterANotice) {
  Job job(3);
  job.join_all();
  job.coordinator->received(1, message::NoticeGiven{"SIGUSR1", 30});
  job.fail(2, 1, 5);
  job.end_all(1, false);
  EXPECT_EQ(job.kind(), JobEnd::Kind::kFailed);
}

TEST(Coordinator, ANoticeBeforeTheStartTakesTheNodeAway) {
  Job job;
  job.join(1, join_of("b"));
  job.coordinator->received(1, message::NoticeGiven{"SIGTERM", 30});
  EXPECT_EQ(job.sent<message::End>().count(1), 1U);
  EXPECT_FALSE(job.coordinator->ended());
  job.join(2, join_of("c"));
  job.join(3, join_of("d"));
  EXPECT_EQ(job.sent<message::Start>().size(), 3U);
  Job other;
  other.join(1, join_of("b"));
  other.coordinator->received(0, message::NoticeGiven{"SIGTERM", 30});
  EXPECT_EQ(other.kind(), JobEnd::Kind::kInterrupted);
  EXPECT_EQ(other.sent<message::End>().count(1), 1U) << "all are told";
}

TEST(Coordinator, AHeadThatWasReplacedGoesOnCounting) {
  Job job(3);
  message::Join back = join_of("b");
  back.restarts = 2;
  back.node_rank = 2;
  job.join(1, back);
  job.join(2, join_of("c"));
  const auto starts = job.sent<message::Start>();
  EXPECT_EQ(starts.at(0).restarts, 2);
  EXPECT_EQ(starts.at(1).node_rank, 2);
}

TEST(Coordinator, WhatAMemberMayNotSayIsPassedOver) {
  Job job;
  job.coordinator->connected(1, "x", "y");
  job.coordinator->received(1, message::Abort{});  // before it has joined
  job.coordinator->received(1, message::NoticeGiven{"SIGTERM", 1});
  job.coordinator->received(9, message::Abort{});
  job.join(2, join_of("b"));
  job.coordinator->received(2, message::Start{});
  job.coordinator->received(2, join_of("b"));
  EXPECT_FALSE(job.coordinator->ended());
  EXPECT_TRUE(job.sent<message::Start>().empty());
}

}  // namespace
}  // namespace skytrain::launch
