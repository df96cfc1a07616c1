#include "skytrain/train/state_snapshot.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "skytrain/train/loops.h"

namespace skytrain::train {
namespace {

// What is checked is copied while it is in the cache.
constexpr int64_t kPiece = 64 << 10;

template <class T>
bool copy_and_check(const at::Tensor& tensor, std::byte* to) {
  const T* const from = tensor.const_data_ptr<T>();
  bool finite = true;
  for (int64_t at = 0; at < tensor.numel(); at += kPiece) {
    const int64_t count = std::min(kPiece, tensor.numel() - at);
    finite = all_finite(from + at, count) && finite;
    std::memcpy(to + size_t(at) * sizeof(T), from + at, size_t(count) * sizeof(T));
  }
  return finite;
}

// Whether it is finite.
bool copy_tensor(const at::Tensor& tensor, std::byte* to) {
  if (!tensor.is_contiguous()) {
    at::from_blob(to, tensor.sizes(), tensor.options()).copy_(tensor);
    return is_finite(tensor);
  }
  if (tensor.scalar_type() == at::kFloat) return copy_and_check<float>(tensor, to);
  if (tensor.scalar_type() == at::kDouble) return copy_and_check<double>(tensor, to);
  std::memcpy(to, tensor.const_data_ptr(), tensor.nbytes());
  return true;
}

}  // namespace

std::set<std::string> buffer_names(const Engine& engine) {
  std::set<std::string> names;
  for (const tensor::NamedTensor& buffer : engine.model().buffers()) names.insert("model." + buffer.name);
  return names;
}

bool is_finite(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return all_finite(tensor.const_data_ptr<float>(), tensor.numel());
  if (tensor.scalar_type() == at::kDouble) return all_finite(tensor.const_data_ptr<double>(), tensor.numel());
  return true;
}

std::string copy_state(std::span<const tensor::NamedTensor> tensors, const std::set<std::string>& may_be_infinite,
                       uint64_t step, checkpoint::FileImage& image) {
  const at::NoGradGuard no_grad;
  const c10::ParallelGuard alone(true);  // the other cores are training
  std::vector<checkpoint::NamedArray> arrays;
  for (const tensor::NamedTensor& item : tensors) arrays.push_back(tensor::array_like(item.name, item.tensor));
  image.lay_out(arrays, {{"format", "pt"}, {"step", std::to_string(step)}});
  std::string bad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool finite = copy_tensor(tensors[i].tensor, image.array(i).data());
    if (!finite && bad.empty() && !may_be_infinite.contains(tensors[i].name)) bad = tensors[i].name;
  }
  return bad;
}

}  // namespace skytrain::train
