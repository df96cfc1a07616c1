#include "skytrain/train/state_snapshot.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "skytrain/checkpoint/memory_snapshot.h"
#include "skytrain/train/loops.h"

namespace skytrain::train {
namespace {

void copy_tensor(const at::Tensor& tensor, std::byte* to) {
  if (tensor.is_contiguous()) {
    std::memcpy(to, tensor.const_data_ptr(), tensor.nbytes());
  } else {
    at::from_blob(to, tensor.sizes(), tensor.options()).copy_(tensor);
  }
}

std::vector<checkpoint::NamedArray> arrays_of(std::span<const tensor::NamedTensor> tensors) {
  std::vector<checkpoint::NamedArray> arrays;
  for (const tensor::NamedTensor& item : tensors) arrays.push_back(tensor::array_like(item.name, item.tensor));
  return arrays;
}

std::map<std::string, std::string> metadata_of(uint64_t step) {
  return {{"format", "pt"}, {"step", std::to_string(step)}};
}

// Names in Engine::state() of the model's buffers: what is no weight.
std::set<std::string> buffer_names(const Engine& engine) {
  std::set<std::string> names;
  for (const tensor::NamedTensor& buffer : engine.model().buffers()) names.insert("model." + buffer.name);
  return names;
}

}  // namespace

void reserve_for_state(std::span<const tensor::NamedTensor> tensors, checkpoint::FileImage& image) {
  image.reserve_for(arrays_of(tensors), metadata_of(std::numeric_limits<uint64_t>::max()));
}

void copy_state(std::span<const tensor::NamedTensor> tensors, uint64_t step, checkpoint::FileImage& image) {
  const at::NoGradGuard no_grad;
  const c10::ParallelGuard alone(true);  // the other cores are training
  image.lay_out(arrays_of(tensors), metadata_of(step));
  for (size_t i = 0; i < tensors.size(); ++i) copy_tensor(tensors[i].tensor, image.array(i).data());
}

bool copy_state_back(checkpoint::FileImage& image, const checkpoint::Manifest& described,
                     std::span<const tensor::NamedTensor> tensors) {
  const at::NoGradGuard no_grad;
  const checkpoint::Manifest::File& file = described.files.at(0);
  if (image.existing(file.bytes).empty()) return false;
  image.lay_out(arrays_of(tensors), metadata_of(described.step));  // writes the header that is there, or another's hash
  if (!checkpoint::is_whole(image.file(), file)) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i].tensor;
    const std::span<std::byte> bytes = image.array(i);
    if (tensor.is_contiguous()) {
      std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    } else {
      tensor.copy_(at::from_blob(bytes.data(), tensor.sizes(), tensor.options()));
    }
  }
  return true;
}

std::string not_finite(std::span<const ArrayToCheck> arrays, const checkpoint::FileImage& image) {
  for (const ArrayToCheck& array : arrays) {
    const std::span<const std::byte> bytes = image.array(array.index);
    const bool finite = array.dtype == at::kFloat
                            ? all_finite(reinterpret_cast<const float*>(bytes.data()), int64_t(bytes.size() / 4))
                            : all_finite(reinterpret_cast<const double*>(bytes.data()), int64_t(bytes.size() / 8));
    if (!finite) return array.name;
  }
  return "";
}

std::vector<ArrayToCheck> arrays_to_check(std::span<const tensor::NamedTensor> tensors, const Engine& engine) {
  const std::set<std::string> may_be_infinite = buffer_names(engine);
  std::vector<ArrayToCheck> arrays;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::ScalarType dtype = tensors[i].tensor.scalar_type();
    if ((dtype == at::kFloat || dtype == at::kDouble) && !may_be_infinite.contains(tensors[i].name))
      arrays.push_back({i, tensors[i].name, dtype});
  }
  return arrays;
}

}  // namespace skytrain::train
