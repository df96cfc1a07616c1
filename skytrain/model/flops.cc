#include "skytrain/model/flops.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <string_view>

namespace skytrain::model {
namespace {

// Multiply-adds of an operator, from its inputs and its (first) output.
using Count = int64_t (*)(c10::ArrayRef<c10::IValue> inputs, const at::Tensor& output);

// Each value of the output is a sum over the kernel's window in the input channels of its group.
int64_t of_convolution(c10::ArrayRef<c10::IValue> inputs, const at::Tensor& output) {
  const at::Tensor& weight = inputs[1].toTensor();  // [out, in / groups, kernel...]
  return output.numel() * (weight.numel() / std::max<int64_t>(weight.size(0), 1));
}
// Each value of the input goes to a window of the output.
int64_t of_transposed_convolution(c10::ArrayRef<c10::IValue> inputs, const at::Tensor&) {
  const at::Tensor& weight = inputs[1].toTensor();  // [in, out / groups, kernel...]
  return inputs[0].toTensor().numel() * (weight.numel() / std::max<int64_t>(weight.size(0), 1));
}
int64_t of_any_convolution(c10::ArrayRef<c10::IValue> inputs, const at::Tensor& output) {
  return inputs[6].toBool() ? of_transposed_convolution(inputs, output) : of_convolution(inputs, output);
}
// a [..., n, k] times b: each value of the output is a sum over k.
template <size_t kLeft>
int64_t of_product(c10::ArrayRef<c10::IValue> inputs, const at::Tensor& output) {
  const at::Tensor& left = inputs[kLeft].toTensor();
  return output.numel() * (left.dim() > 0 ? left.size(-1) : 1);
}
// query [..., L, E], key [..., S, E], value [..., S, V]: L S E for the scores, L S V for the mean.
int64_t of_attention(c10::ArrayRef<c10::IValue> inputs, const at::Tensor& output) {
  const at::Tensor &query = inputs[0].toTensor(), &key = inputs[1].toTensor();
  return (query.numel() + output.numel()) * key.size(-2);
}

struct Counted {
  std::string_view name;
  Count count;
};

// An operator that is made of others of this list counts as a whole: see Counter.
constexpr Counted kCounted[] = {
    {"aten::conv1d", of_convolution},
    {"aten::conv2d", of_convolution},
    {"aten::conv3d", of_convolution},
    {"aten::convolution", of_any_convolution},
    {"aten::_convolution", of_any_convolution},
    {"aten::_slow_conv2d_forward", of_convolution},
    {"aten::conv_transpose1d", of_transposed_convolution},
    {"aten::conv_transpose2d", of_transposed_convolution},
    {"aten::conv_transpose3d", of_transposed_convolution},
    {"aten::linear", of_product<0>},
    {"aten::matmul", of_product<0>},
    {"aten::mm", of_product<0>},
    {"aten::bmm", of_product<0>},
    {"aten::mv", of_product<0>},
    {"aten::addmm", of_product<1>},
    {"aten::addmm_", of_product<1>},
    {"aten::baddbmm", of_product<1>},
    {"aten::addmv", of_product<1>},
    {"aten::scaled_dot_product_attention", of_attention},
};

// Of the calling thread while a model is being counted.
struct Counter {
  int64_t multiply_adds = 0;
  int depth = 0;  // of counted operators that are running: the inner ones are the outer one's work
};
thread_local Counter* counter = nullptr;

struct Inside : at::ObserverContext {
  Count count = nullptr;  // of an outermost counted operator
  std::vector<c10::IValue> inputs;
};

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  if (counter == nullptr) return nullptr;
  const std::string_view name = function.name();
  const auto* found =
      std::find_if(std::begin(kCounted), std::end(kCounted), [name](const Counted& c) { return c.name == name; });
  if (found == std::end(kCounted)) return nullptr;
  auto inside = std::make_unique<Inside>();
  if (counter->depth++ == 0) {
    inside->count = found->count;
    inside->inputs.assign(function.inputs().begin(), function.inputs().end());
  }
  return inside;
}

void leave(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr || counter == nullptr) return;
  --counter->depth;
  const auto& inside = static_cast<Inside&>(*context);
  // An operator that threw has no outputs.
  if (inside.count != nullptr && !function.outputs().empty() && function.outputs()[0].isTensor())
    counter->multiply_adds += inside.count(inside.inputs, function.outputs()[0].toTensor());
}

class Watch {
 public:
  explicit Watch(Counter& watched) {
    counter = &watched;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Watch() {
    at::removeCallback(handle_);
    counter = nullptr;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  at::CallbackHandle handle_;
};

// Evaluation mode while alive.
class Evaluation {
 public:
  explicit Evaluation(Model& model) : model_(model), training_(model.training()) { model.set_training(false); }
  ~Evaluation() { model_.set_training(training_); }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Model& model_;
  bool training_;
};

}  // namespace

int64_t count_flops(Model& model, const InputShape& input) {
  const at::NoGradGuard no_grad;
  const Evaluation evaluation(model);
  const at::ScalarType dtype =
      model.parameters().empty() ? at::kFloat : model.parameters().front().tensor.scalar_type();
  const at::Tensor image = at::zeros({1, input.channels, input.height, input.width}, dtype);
  Counter counted;
  const Watch watch(counted);
  model.forward(image);
  return 2 * counted.multiply_adds;
}

}  // namespace skytrain::model
