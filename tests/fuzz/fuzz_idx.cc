// Files of the formats idx and cifar10, plain and packed with gzip. The first byte says what the others are: a file of
// images, of labels, of CIFAR-10's records or of its class names; and whether it is plain, gzip, or to be packed first.
// Beside images lie as many labels, and beside labels as many images.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/data/cifar10.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/idx.h"
#include "skytrain/data/idx_test_data.h"

namespace {

using namespace skytrain;  // NOLINT(google-build-using-namespace)

void require(bool holds) {
  if (!holds) std::abort();
}

void read(const std::function<std::unique_ptr<data::Dataset>()>& open) {
  try {
    const auto set = open();
    const data::DatasetInfo& info = set->info();
    require(info.samples > 0 && info.channels > 0 && info.height > 0 && info.width > 0);
    uint64_t sum = 0;
    const auto sample = static_cast<size_t>(info.channels * info.height * info.width);
    for (uint64_t i = 0; i < info.samples; ++i) {
      const uint8_t* const pixels = data::pixels_of(*set, i);
      for (size_t p = 0; p < sample; ++p) sum += pixels[p];
      require(set->label(i) >= 0 && set->label(i) < info.classes && !set->name(i).empty());
    }
    require(sum <= 255 * info.samples * sample);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kData && error.problem().find('\n') == std::string::npos);
  }
}

// The number of samples that the header of an IDX file announces; 1 when it announces more than a test can hold.
uint32_t announced(const std::string& bytes) {
  uint32_t samples = 0;
  for (size_t i = 4; i < 8; ++i) samples = samples << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
  return samples <= 1 << 16 ? samples : 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int kind = data[0] % 4, packing = data[0] / 4 % 3;
  const std::string bytes = packing == 2 ? data::gzip(content) : content, ending = packing == 0 ? "" : ".gz";
  const std::string images = "/set/train-images-idx3-ubyte", labels = "/set/train-labels-idx1-ubyte";
  MemoryFileSystem fs;
  recipe::DatasetSpec spec;
  spec.path = "/set";
  spec.split = "train";
  switch (kind) {
    case 0:
      data::put_file(fs, images + ending, bytes);
      data::put_file(fs, labels, data::idx_labels(announced(content), 10));
      break;
    case 1:
      data::put_file(fs, images, data::idx_images(announced(content), 1, 1));
      data::put_file(fs, labels + ending, bytes);
      break;
    case 2:
      data::put_file(fs, "/set/data_batch_1.bin" + ending, bytes);
      break;
    default:
      data::put_file(fs, "/set/data_batch_1.bin", std::string(3073, '\1'));
      data::put_file(fs, "/set/batches.meta.txt", content);
  }
  read([&]() -> std::unique_ptr<data::Dataset> {
    if (kind < 2) return data::IdxDataset::open(fs, spec, /*classes=*/0);
    return data::Cifar10Dataset::open(fs, spec, {});
  });
  return 0;
}
