// skytrain/train/prefetcher.h
//
// Batches made ahead of the steps that need them, by threads of the input pipeline. Their tensors change places with
// those that a replica has used, so nothing is copied, and nothing allocated once all are there.

#pragma once
#include <cstdint>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/data/read_ahead.h"
#include "skytrain/data/slots.h"
#include "skytrain/train/data_feed.h"

namespace skytrain::train {

class Prefetcher {
 public:
  struct Options {
    uint64_t first_step = 0, end_step = 0;
    int replicas = 1;
    int least_threads = 1, most_threads = 1;
  };
  // Two batches are made ahead for each replica. feed must outlive this; slots is copied.
  Prefetcher(const DataFeed& feed, const data::Slots& slots, const Options& options);

  // As train::FillSlot. Rethrows what making the batch threw. Steps from the first on, each once.
  void take(uint64_t step, const data::Slot& slot, at::Tensor& images, at::Tensor& target);

  // Ends all that wait in take(), now and later, with data::ReadAhead::Cancelled.
  void cancel() { ahead_.cancel(); }

  data::ReadAhead::Figures figures() const { return ahead_.figures(); }

 private:
  bool fill(uint64_t ticket, int place);

  const DataFeed& feed_;
  const data::Slots slots_;
  const uint64_t replicas_, tickets_per_step_;
  std::vector<uint64_t> ticket_of_;  // of each slot of a step: the replicas' first slots, their second ones, …
  std::vector<int64_t> slot_of_;     // of each ticket of a step; -1: none
  std::vector<Batch> batches_;       // by place
  data::ReadAhead ahead_;            // last: its threads use all of the above
};

// {"workers", "filling_s", "cpu_s", "waiting_s"}: threads, their seconds on the wall and on a processor, and those that
// replicas waited for them.
OrderedJson to_json(const data::ReadAhead::Figures& figures);

}  // namespace skytrain::train
