// skytrain/weights/pt_reader.h
//
// The two containers of torch.save, from a file's bytes to arrays. The result's `memory` is not set: its arrays' bytes
// lie in `file` and in `copies`.

#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "skytrain/weights/refusal.h"
#include "skytrain/weights/weights.h"

namespace skytrain::weights {

struct PtContent {
  Weights weights;
  std::vector<std::unique_ptr<std::byte[]>> copies;
};
// Since PyTorch 1.6: a zip with <root>/data.pkl and <root>/data/<key>.
PtContent read_pt_zip(std::span<const std::byte> file, const Refusal& refuse);
// Before: pickles of a magic number, a version, facts about the machine, the object and the storages' keys; then the
// storages, each an element count of 8 bytes and its bytes.
PtContent read_pt_legacy(std::span<const std::byte> file, const Refusal& refuse);

}  // namespace skytrain::weights
