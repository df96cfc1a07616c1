#include "skytrain/train/prefetcher.h"

#include <utility>

namespace skytrain::train {
namespace {

constexpr int kBatchesPerReplica = 2;

uint64_t tickets_per_step(const data::Slots& slots, uint64_t replicas) {
  return (slots.slots_per_step() + replicas - 1) / replicas * replicas;
}

}  // namespace

Prefetcher::Prefetcher(const DataFeed& feed, const data::Slots& slots, const Options& options)
    : feed_(feed),
      slots_(slots),
      replicas_(uint64_t(options.replicas)),
      tickets_per_step_(tickets_per_step(slots, replicas_)),
      ticket_of_(slots.slots_per_step()),
      slot_of_(tickets_per_step_, -1),
      batches_(size_t(options.replicas) * kBatchesPerReplica),
      ahead_(
          [&] {
            for (uint64_t replica = 0; replica < replicas_; ++replica) {
              uint64_t turn = 0;
              for (const data::Slot& slot : slots_.deal(options.first_step, replica, replicas_)) {
                const uint64_t ticket = turn++ * replicas_ + replica;
                ticket_of_[slot.index] = ticket;
                slot_of_[ticket] = int64_t(slot.index);
              }
            }
            return data::ReadAhead::Options{.first = options.first_step * tickets_per_step_,
                                            .end = options.end_step * tickets_per_step_,
                                            .places = int(batches_.size()),
                                            .least_threads = options.least_threads,
                                            .most_threads = options.most_threads};
          }(),
          [this](uint64_t ticket, int place) { return fill(ticket, place); }) {}

bool Prefetcher::fill(uint64_t ticket, int place) {
  const int64_t index = slot_of_[ticket % tickets_per_step_];
  if (index < 0) return false;
  const data::Slot slot = slots_.slot(ticket / tickets_per_step_, uint64_t(index));
  if (slot.count == 0) return false;
  Batch& batch = batches_[size_t(place)];
  feed_.fill(slot, batch.images, batch.target);
  return true;
}

void Prefetcher::take(uint64_t step, const data::Slot& slot, at::Tensor& images, at::Tensor& target) {
  ahead_.take(step * tickets_per_step_ + ticket_of_[slot.index], [&](int place) {
    std::swap(images, batches_[size_t(place)].images);
    std::swap(target, batches_[size_t(place)].target);
  });
}

OrderedJson to_json(const data::ReadAhead::Figures& figures) {
  return {{"workers", figures.threads},
          {"filling_s", figures.filling},
          {"cpu_s", figures.cpu},
          {"waiting_s", figures.waiting}};
}

}  // namespace skytrain::train
