#include "skytrain/data/raw_as_png.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/data/parallel.h"
#include "skytrain/image/png_writer.h"

namespace skytrain::data {
namespace {

constexpr uint64_t kSamplesPerTask = 256;

recipe::DatasetSpec size_of(const DatasetInfo& info) {
  recipe::DatasetSpec spec;
  spec.size = std::min(info.height, info.width);
  return spec;
}

}  // namespace

bool has_raw_pictures(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  return info.elements == Elements::kUint8 && dataset.encoded_pictures() == nullptr &&
         (info.channels == 1 || info.channels == 3);
}

std::string sample_as_png(const Dataset& dataset, uint64_t index, Scratch& scratch) {
  const DatasetInfo& info = dataset.info();
  const uint8_t* const planes = dataset.pixels(index, scratch);
  const size_t pixels = static_cast<size_t>(info.height * info.width), channels = static_cast<size_t>(info.channels);
  std::vector<uint8_t> interleaved(pixels * channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < pixels; ++i) interleaved[i * channels + c] = planes[c * pixels + i];
  }
  return image::png_file(interleaved.data(), {info.width, info.height}, info.channels, dataset.name(index));
}

RawAsPng::RawAsPng(const Dataset& source, int threads, const std::function<bool()>& stop)
    : EncodedPictures(size_of(source.info()), {}), source_(source), info_(source.info()), files_(info_.samples) {
  info_.channels = 3;
  for_each_parallel((info_.samples - 1) / kSamplesPerTask + 1,
                    [&](uint64_t task) {
                      if (stop && stop())
                        throw Error(ErrorKind::kInterrupted, info_.format, "stopped while pixels were encoded");
                      Scratch scratch;
                      const uint64_t end = std::min(info_.samples, (task + 1) * kSamplesPerTask);
                      for (uint64_t i = task * kSamplesPerTask; i < end; ++i)
                        files_[i] = sample_as_png(source, i, scratch);
                    },
                    threads);
}

std::span<const uint8_t> RawAsPng::encoded(uint64_t index, Scratch& scratch) const {
  scratch.path = name(index);
  const std::string& file = files_[index];
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

}  // namespace skytrain::data
