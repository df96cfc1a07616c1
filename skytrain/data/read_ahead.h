// skytrain/data/read_ahead.h
//
// Work done ahead by threads of its own, and handed over in order: numbered tickets are filled into a fixed number of
// places, which are used again once their content was taken. What a ticket holds never depends on the threads.

#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace skytrain::data {

class ReadAhead {
 public:
  struct Options {
    uint64_t first = 0, end = 0;  // tickets
    int places = 2;               // tickets that are filled or being filled at a time; > 0
    int least_threads = 1;        // from the start
    int most_threads = 1;         // more are started while takers wait for more than kMostWaiting of the time
  };
  static constexpr double kMostWaiting = 0.02;

  // Writes ticket into place. False: there is nothing in this ticket, and nobody will take it. Called by the threads,
  // at the same time for different places. What it throws is rethrown by take().
  using Fill = std::function<bool(uint64_t ticket, int place)>;

  ReadAhead(const Options& options, Fill fill);
  ~ReadAhead();  // waits for the fills that are being done
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Waits until the ticket is filled, calls use(place), and gives the place to a later ticket. Each ticket once; by
  // several threads at a time, as long as nobody leaves more than `places` - 1 tickets out.
  void take(uint64_t ticket, const std::function<void(int place)>& use);

  // What take() throws from then on, at once: for takers that wait for what nobody will take before them.
  class Cancelled : public std::exception {
   public:
    const char* what() const noexcept override { return "what was read ahead is not wanted any more"; }
  };
  void cancel();

  struct Figures {
    int threads = 0;
    double filling = 0;  // seconds of all threads, on the wall
    double cpu = 0;      // of them, those on a processor
    double waiting = 0;  // seconds of all takers, but for the first `places` tickets
    uint64_t tickets = 0;
  };
  Figures figures() const;

 private:
  struct Place {
    enum class State { kFree, kFilling, kReady } state = State::kFree;
    uint64_t ticket = 0;
    std::exception_ptr failure;
  };

  void work();
  void start_thread();
  void consider_threads(double waited);

  const Options options_;
  const Fill fill_;
  mutable std::mutex mutex_;
  std::condition_variable ready_, free_;
  std::vector<Place> places_;
  std::vector<std::thread> threads_;
  uint64_t next_;
  bool stop_ = false;
  Figures figures_;
  // Since the last look at whether there are enough threads.
  double window_begin_ = 0, window_waiting_ = 0;
  int window_tickets_ = 0;
};

}  // namespace skytrain::data
