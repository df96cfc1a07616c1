#include "skytrain/data/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "skytrain/base/cpu_clock.h"

namespace skytrain::data {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// How many tickets a look at the waiting takes: fewer would follow chance.
constexpr int kWindow = 8;

}  // namespace

ReadAhead::ReadAhead(const Options& options, Fill fill)
    : options_(options), fill_(std::move(fill)), places_(static_cast<size_t>(options.places)), next_(options.first) {
  for (int i = 0; i < options_.least_threads; ++i) start_thread();
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadAhead::start_thread() {
  threads_.emplace_back([this] { work(); });
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto place_of_next = [this] { return next_ % places_.size(); };
    free_.wait(lock,
               [&] { return stop_ || next_ >= options_.end || places_[place_of_next()].state == Place::State::kFree; });
    if (stop_ || next_ >= options_.end) return;
    const size_t index = place_of_next();
    Place& place = places_[index];
    place.state = Place::State::kFilling;
    place.ticket = next_++;
    lock.unlock();

    const double begin = now(), cpu = thread_cpu_seconds();
    bool filled = true;
    std::exception_ptr failure;
    try {
      filled = fill_(place.ticket, static_cast<int>(index));
    } catch (...) {
      failure = std::current_exception();
    }
    const double seconds = now() - begin, cpu_seconds = thread_cpu_seconds() - cpu;

    lock.lock();
    figures_.filling += seconds;
    figures_.cpu += cpu_seconds;
    place.failure = failure;
    place.state = filled ? Place::State::kReady : Place::State::kFree;
    filled ? ready_.notify_all() : free_.notify_all();
  }
}

void ReadAhead::take(uint64_t ticket, const std::function<void(int)>& use) {
  const size_t index = ticket % places_.size();
  Place& place = places_[index];
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] { return stop_ || (place.state == Place::State::kReady && place.ticket == ticket); };
  double waited = 0;
  if (!is_ready()) {
    const double begin = now();
    ready_.wait(lock, is_ready);
    waited = now() - begin;
  }
  if (stop_) throw Cancelled();
  if (ticket >= options_.first + places_.size()) {  // nobody could have been ahead of the first
    figures_.waiting += waited;
    consider_threads(waited);
  }
  const std::exception_ptr failure = std::exchange(place.failure, nullptr);
  if (!failure) {
    lock.unlock();
    use(static_cast<int>(index));
    lock.lock();
  }
  place.state = Place::State::kFree;
  ++figures_.tickets;
  lock.unlock();
  // All of them: the one that is told may find that a place before this one is still taken, and sleep again.
  free_.notify_all();
  if (failure) std::rethrow_exception(failure);
}

void ReadAhead::cancel() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  ready_.notify_all();
  free_.notify_all();
}

void ReadAhead::consider_threads(double waited) {
  if (window_tickets_ == 0) window_begin_ = now() - waited;
  window_waiting_ += waited;
  if (++window_tickets_ < kWindow) return;
  const bool starving = window_waiting_ > kMostWaiting * (now() - window_begin_);
  if (starving && static_cast<int>(threads_.size()) < options_.most_threads) start_thread();
  window_tickets_ = 0;
  window_waiting_ = 0;
}

ReadAhead::Figures ReadAhead::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.threads = static_cast<int>(threads_.size());
  return figures;
}

}  // namespace skytrain::data
