// Models and batches for tests of this folder.

#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/model/model.h"

namespace skytrain::model {

inline recipe::ModelSpec spec_of(const std::string& name, int64_t classes = 10) {
  recipe::ModelSpec spec;
  spec.name = name;
  spec.classes = classes;
  spec.stem = "cifar";
  spec.width = 8;
  return spec;
}

inline std::unique_ptr<Model> build(const recipe::ModelSpec& spec, const InputShape& input, uint64_t seed = 7,
                                    at::ScalarType dtype = at::kFloat) {
  return build_model(spec, input, at::detail::createCPUGenerator(seed), dtype);
}

inline at::Tensor random_images(int64_t count, const InputShape& input, uint64_t seed,
                                at::ScalarType dtype = at::kFloat) {
  return at::empty({count, input.channels, input.height, input.width}, dtype)
      .uniform_(-1, 1, at::detail::createCPUGenerator(seed));
}

inline at::Tensor some_labels(int64_t count, int64_t classes) {
  return at::arange(count, at::kLong).remainder(classes);
}

inline at::Tensor loss_of(Model& model, const at::Tensor& images, int64_t classes) {
  return at::cross_entropy_loss(model.forward(images).to(at::kFloat), some_labels(images.size(0), classes));
}

inline std::vector<std::string> names(const std::vector<tensor::NamedTensor>& tensors) {
  std::vector<std::string> all;
  all.reserve(tensors.size());
  for (const tensor::NamedTensor& item : tensors) all.push_back(item.name);
  return all;
}

// NaNs with the same bits are equal too.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

inline std::vector<at::Tensor> copies(const std::vector<tensor::NamedTensor>& tensors, bool gradients = false) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const tensor::NamedTensor& item : tensors)
    result.push_back((gradients ? item.tensor.grad() : item.tensor.detach()).clone());
  return result;
}

// torch.autocast("cpu", dtype=torch.bfloat16) while alive, if `on`.
class Autocast {
 public:
  explicit Autocast(bool on) : on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
};

// The calling thread's operators run on one core while alive: quicker for small models, and no sum depends on the
// machine.
class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/skytrain-model-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The message of the Error that `work` throws, whose cause must be one line.
inline std::string error_of(const std::function<void()>& work, ErrorKind kind) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.message();
    EXPECT_EQ(error.problem().find('\n'), std::string::npos) << error.problem();
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace skytrain::model
