// tests/parity/goldens.h
//
// What make_goldens.py computed, and the hash that both sides draw weights and pictures from.

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/checkpoint/safetensors.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/tensor/state.h"

namespace skytrain::parity {

// One file of goldens. Throws std::runtime_error for a key that it lacks.
class Goldens {
 public:
  // name: "goldens.safetensors", in the folder that SKYTRAIN_GOLDENS names, or in tests/parity.
  explicit Goldens(const std::string& name);

  std::vector<double> operator[](const std::string& key) const;
  std::vector<std::string> with_prefix(const std::string& prefix) const;
  const Json& cases() const { return cases_; }

 private:
  std::string content_;
  checkpoint::SafetensorsHeader header_;
  Json cases_;
};

// Word `index` of stream `stream`: SplitMix64 of (stream << 32) + index.
uint64_t bits(uint64_t stream, uint64_t index);
double unit(uint64_t stream, uint64_t index);  // in [-1, 1)

// Sets every element of a float32 or float64 tensor to set(its flat index).
template <class F>
void for_each_element(const at::Tensor& tensor, const F& set) {
  const at::Tensor flat = tensor.view({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (tensor.scalar_type() == at::kDouble)
      flat.mutable_data_ptr<double>()[i] = set(i);
    else
      flat.mutable_data_ptr<float>()[i] = float(set(i));
  }
}

// Parameter k from stream 1000 + k, scaled by 1/sqrt(fan in) of its layer; norms near their default.
void fill_weights(const std::vector<tensor::NamedTensor>& parameters);

// Sample `sample` of the endless stream of pictures [C, H, W] of a class each, of which `signal` quarters are the
// class's and the rest noise; one label in four is random.
void fill_picture(uint64_t sample, uint64_t classes, uint64_t signal, const at::Tensor& picture);
int64_t label_of(uint64_t sample, uint64_t classes);

// From {"name", "lr", …}; what it does not say stays at its default.
recipe::OptimizerSpec optimizer_spec(const Json& golden);

// [sum / sqrt(count), 2-norm, every stride-th element, at most `most`]
std::vector<double> sampled(const at::Tensor& tensor, int64_t most);

// A test fails, in one line for the worst element, when an element is off by more than tolerance * max(1, |golden|).
void expect_close(const std::vector<double>& ours, const std::vector<double>& golden, const std::string& what,
                  double tolerance);

}  // namespace skytrain::parity
