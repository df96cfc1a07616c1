// Models with one fault each, for skytrain/model/plugin_test.cc.

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <cstdlib>
#include <stdexcept>

#include "skytrain/model/plugin.h"

namespace nn = torch::nn;

class Sound : public nn::Module {
 public:
  explicit Sound(const skytrain::ModelShape& shape)
      : fc(register_module("fc", nn::Linear(shape.channels * shape.height * shape.width, shape.classes))) {}
  torch::Tensor forward(const torch::Tensor& images) { return fc(images.flatten(1)); }
  nn::Linear fc;
};
SKYTRAIN_MODEL(Sound)

class ThrowsWhenBuilt : public Sound {
 public:
  explicit ThrowsWhenBuilt(const skytrain::ModelShape& shape) : Sound(shape) {
    throw std::runtime_error("needs pictures of 32 x 32\nor more");
  }
};
SKYTRAIN_MODEL(ThrowsWhenBuilt)

class ThrowsANumber : public Sound {
 public:
  explicit ThrowsANumber(const skytrain::ModelShape& shape) : Sound(shape) {}
  torch::Tensor forward(const torch::Tensor&) { throw 7; }
};
SKYTRAIN_MODEL(ThrowsANumber)

class WrongShape : public Sound {
 public:
  explicit WrongShape(const skytrain::ModelShape& shape) : Sound(shape) {}
  torch::Tensor forward(const torch::Tensor& images) { return fc(images.flatten(1)).sum(1); }
};
SKYTRAIN_MODEL(WrongShape)

class NoParameters : public nn::Module {
 public:
  explicit NoParameters(const skytrain::ModelShape&) {}
  torch::Tensor forward(const torch::Tensor& images) { return images.flatten(1); }
};
SKYTRAIN_MODEL(NoParameters)

namespace crashing {

void crash() {
  static int* volatile nowhere = nullptr;
  *nowhere = 1;  // NOLINT(clang-analyzer-core.NullDereference): the fault is wanted
}

class Identity : public torch::autograd::Function<Identity> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    crash();
    return {torch::Tensor()};
  }
};

int endless(volatile int* depth) {
  *depth = *depth + 1;
  return *depth == 0 ? 0 : endless(depth) + *depth;
}

class InForward : public Sound {
 public:
  explicit InForward(const skytrain::ModelShape& shape) : Sound(shape) {}
  torch::Tensor forward(const torch::Tensor& images) {
    crash();
    return Sound::forward(images);
  }
};
class InBackward : public Sound {
 public:
  explicit InBackward(const skytrain::ModelShape& shape) : Sound(shape) {}
  torch::Tensor forward(const torch::Tensor& images) { return Identity::apply(Sound::forward(images)); }
};
class Aborts : public Sound {
 public:
  explicit Aborts(const skytrain::ModelShape& shape) : Sound(shape) {}
  torch::Tensor forward(const torch::Tensor&) { std::abort(); }
};
class Recurses : public Sound {
 public:
  explicit Recurses(const skytrain::ModelShape& shape) : Sound(shape) {}
  torch::Tensor forward(const torch::Tensor& images) {
    volatile int depth = 0;
    return Sound::forward(images) * endless(&depth);
  }
};

}  // namespace crashing
SKYTRAIN_MODEL(crashing::InForward)
SKYTRAIN_MODEL(crashing::InBackward)
SKYTRAIN_MODEL(crashing::Aborts)
SKYTRAIN_MODEL(crashing::Recurses)
