#include "skytrain/data/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace skytrain::data {
namespace {

using std::chrono::milliseconds;

TEST(ReadAhead, HandsOverEveryTicketWhateverTheThreads) {
  for (const int threads : {1, 2, 5}) {
    for (const int places : {1, 2, 7}) {
      std::vector<uint64_t> content(static_cast<size_t>(places));
      ReadAhead ahead({.first = 3, .end = 200, .places = places, .least_threads = threads, .most_threads = threads},
                      [&](uint64_t ticket, int place) {
                        content[static_cast<size_t>(place)] = ticket * ticket;
                        return true;
                      });
      for (uint64_t ticket = 3; ticket < 200; ++ticket)
        ahead.take(ticket, [&](int place) { ASSERT_EQ(content[static_cast<size_t>(place)], ticket * ticket); });
      EXPECT_EQ(ahead.figures().tickets, 197u);
    }
  }
}

TEST(ReadAhead, SeveralTakersEachTakeTheirOwn) {
  constexpr uint64_t kTickets = 400, kTakers = 3;
  std::vector<uint64_t> content(8);
  std::atomic<uint64_t> wrong{0};
  ReadAhead ahead({.first = 0, .end = kTickets, .places = 8, .least_threads = 2, .most_threads = 2},
                  [&](uint64_t ticket, int place) {
                    content[static_cast<size_t>(place)] = ticket;
                    return ticket % 5 != 4;
                  });
  std::vector<std::thread> takers;
  for (uint64_t taker = 0; taker < kTakers; ++taker)
    takers.emplace_back([&, taker] {
      for (uint64_t ticket = taker; ticket < kTickets; ticket += kTakers)
        if (ticket % 5 != 4)
          ahead.take(ticket, [&](int place) { wrong += content[static_cast<size_t>(place)] != ticket; });
    });
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(ahead.figures().tickets, kTickets - kTickets / 5);
}

TEST(ReadAhead, AFailureIsOfItsTicketAlone) {
  ReadAhead ahead({.first = 0, .end = 6, .places = 3, .least_threads = 2, .most_threads = 2}, [](uint64_t ticket, int) {
    if (ticket == 2) throw std::runtime_error("broken");
    return true;
  });
  for (uint64_t ticket = 0; ticket < 6; ++ticket) {
    bool used = false;
    const auto use = [&](int) { used = true; };
    if (ticket == 2)
      EXPECT_THROW(ahead.take(ticket, use), std::runtime_error);
    else
      ahead.take(ticket, use);
    EXPECT_EQ(used, ticket != 2);
  }
}

TEST(ReadAhead, NeverHoldsMoreThanItsPlaces) {
  std::atomic<int> held{0}, most{0};
  {
    ReadAhead ahead({.first = 0, .end = 1000, .places = 4, .least_threads = 3, .most_threads = 3}, [&](uint64_t, int) {
      const int now = ++held;
      for (int before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
      return true;
    });
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_LE(held, 4);
    for (uint64_t ticket = 0; ticket < 50; ++ticket) ahead.take(ticket, [&](int) { --held; });
  }  // ends in the middle
  EXPECT_LE(most, 4);
}

TEST(ReadAhead, TakersThatWaitGetMoreThreads) {
  const auto fill = [](uint64_t, int) {
    std::this_thread::sleep_for(milliseconds(2));
    return true;
  };
  ReadAhead slow({.first = 0, .end = 200, .places = 8, .least_threads = 1, .most_threads = 4}, fill);
  for (uint64_t ticket = 0; ticket < 200; ++ticket) slow.take(ticket, [](int) {});
  EXPECT_EQ(slow.figures().threads, 4);
  EXPECT_GT(slow.figures().waiting, 0);

  ReadAhead enough({.first = 0, .end = 40, .places = 8, .least_threads = 1, .most_threads = 4},
                   [](uint64_t, int) { return true; });
  for (uint64_t ticket = 0; ticket < 40; ++ticket) {
    std::this_thread::sleep_for(milliseconds(2));
    enough.take(ticket, [](int) {});
  }
  EXPECT_LE(enough.figures().threads, 2);
}

// A taker failed and left its tickets where they were: the other one waited for ever.
TEST(ReadAhead, TakersThatWaitAreToldWhenItIsCancelled) {
  ReadAhead ahead({.first = 0, .end = 100, .places = 2, .least_threads = 1, .most_threads = 1},
                  [](uint64_t, int) { return true; });
  std::thread taker([&] { EXPECT_THROW(ahead.take(5, [](int) {}), ReadAhead::Cancelled); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ahead.cancel();
  taker.join();
  EXPECT_THROW(ahead.take(0, [](int) {}), ReadAhead::Cancelled);
}

}  // namespace
}  // namespace skytrain::data
