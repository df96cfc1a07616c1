#include "skytrain/data/inspection.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/parallel.h"
#include "skytrain/image/picture.h"

namespace skytrain::data {
namespace {

constexpr uint64_t kChunk = 64;  // samples that a thread takes at a time

struct Seen {
  std::string hash;  // of the file
  uint64_t bytes = 0;
  int64_t width = 0, height = 0;  // 0: can't be used
};

Spread spread_of(std::vector<uint64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[(values.size() - 1) / 2], values.back()};
}

// Groups of equal hashes.
void find_duplicates(const Dataset& dataset, const std::vector<Seen>& seen, Inspection& found) {
  std::vector<uint64_t> order(seen.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) { return seen[a].hash < seen[b].hash; });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && seen[order[end]].hash == seen[order[begin]].hash) ++end;
    if (end - begin > 1 && !seen[order[begin]].hash.empty()) {
      found.duplicates.emplace_back(order.begin() + static_cast<ptrdiff_t>(begin),
                                    order.begin() + static_cast<ptrdiff_t>(end));
      const auto other = [&](uint64_t i) { return dataset.label(i) != dataset.label(order[begin]); };
      found.contradictions += std::any_of(found.duplicates.back().begin(), found.duplicates.back().end(), other);
    }
    begin = end;
  }
  std::sort(found.duplicates.begin(), found.duplicates.end());
}

class Inspector {
 public:
  Inspector(const Dataset& dataset, const EncodedPictures& pictures, Inspection& found)
      : dataset_(dataset), pictures_(pictures), found_(found), seen_(dataset.info().samples) {}

  void run(const std::function<void(uint64_t)>& done, const std::function<bool()>& stop) {
    const uint64_t samples = seen_.size(), chunks = (samples + kChunk - 1) / kChunk;
    uint64_t finished = 0;
    for_each_parallel(chunks, [&](uint64_t chunk) {
      if (stop && stop()) throw Error(ErrorKind::kInterrupted, dataset_.info().format, "stopped on request");
      Scratch scratch;
      const uint64_t begin = chunk * kChunk, end = std::min(samples, begin + kChunk);
      for (uint64_t i = begin; i < end; ++i) look_at(i, scratch);
      const std::lock_guard lock(mutex_);
      finished += end - begin;
      if (done) done(finished);
    });
    std::sort(found_.broken.begin(), found_.broken.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    std::vector<uint64_t> bytes, widths, heights;
    for (const Seen& seen : seen_) {
      bytes.push_back(seen.bytes);
      if (seen.width == 0) continue;
      widths.push_back(static_cast<uint64_t>(seen.width));
      heights.push_back(static_cast<uint64_t>(seen.height));
    }
    found_.bytes = spread_of(std::move(bytes));
    found_.width = spread_of(std::move(widths));
    found_.height = spread_of(std::move(heights));
    find_duplicates(dataset_, seen_, found_);
  }

 private:
  void look_at(uint64_t index, Scratch& scratch) {
    Seen& seen = seen_[index];
    try {
      const std::span<const uint8_t> file = pictures_.encoded(index, scratch);
      seen.bytes = file.size();
      seen.hash = xxh128_hex(std::as_bytes(file));
      const bool jpeg = image::is_jpeg(file), png = image::is_png(file);
      const image::Picture picture = image::decode_picture(file, scratch.path, scratch);
      seen.width = picture.width;
      seen.height = picture.height;
      const std::lock_guard lock(mutex_);
      found_.jpeg += jpeg;
      found_.png += png;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      const std::lock_guard lock(mutex_);
      found_.broken.push_back({index, dataset_.name(index), error.problem()});
    }
    scratch.give_back_excess();
  }

  const Dataset& dataset_;
  const EncodedPictures& pictures_;
  Inspection& found_;
  std::vector<Seen> seen_;
  std::mutex mutex_;  // of found_'s counters and broken ones
};

}  // namespace

Inspection inspect(const Dataset& dataset, const std::function<void(uint64_t)>& done,
                   const std::function<bool()>& stop) {
  Inspection found;
  if (dataset.info().values == 0) {
    found.per_class.resize(static_cast<size_t>(dataset.info().classes));
    for (uint64_t i = 0; i < dataset.info().samples; ++i) ++found.per_class[static_cast<size_t>(dataset.label(i))];
  }
  const EncodedPictures* pictures = dataset.encoded_pictures();
  if (pictures != nullptr) Inspector(dataset, *pictures, found).run(done, stop);
  return found;
}

}  // namespace skytrain::data
