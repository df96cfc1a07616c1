#include "skytrain/model/activation_checkpointing.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <utility>
#include <vector>

namespace skytrain::model {
namespace {

thread_local bool recomputing = false;

class RecomputingScope {
 public:
  RecomputingScope() : outer_(std::exchange(recomputing, true)) {}
  ~RecomputingScope() { recomputing = outer_; }
  RecomputingScope(const RecomputingScope&) = delete;
  RecomputingScope& operator=(const RecomputingScope&) = delete;

 private:
  bool outer_;
};

struct AutocastState {
  at::DeviceType device;
  bool enabled;
  at::ScalarType dtype;

  static AutocastState of(at::DeviceType device) {
    return {device, at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
  }
  void set() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
  }
};

// `state`, without the cache, while alive.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state)
      : outer_(AutocastState::of(state.device)), outer_cache_(at::autocast::is_autocast_cache_enabled()) {
    state.set();
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastScope() {
    outer_.set();
    at::autocast::set_autocast_cache_enabled(outer_cache_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState outer_;
  bool outer_cache_;
};

at::Tensor state_of(at::Generator& generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator& generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// The generator as it was, while alive.
class RandomScope {
 public:
  RandomScope(std::optional<at::Generator>& generator, const at::Tensor& state) : generator_(generator) {
    if (!generator_) return;
    outer_ = state_of(*generator_);
    set_state(*generator_, state);
  }
  ~RandomScope() {
    if (generator_) set_state(*generator_, outer_);
  }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  std::optional<at::Generator>& generator_;
  at::Tensor outer_;
};

// What a second run needs besides x.
struct Replay : torch::CustomClassHolder {
  Block block;
  AutocastState autocast{};
  std::optional<at::Generator> generator;
  at::Tensor generator_state;
};

using torch::autograd::variable_list;

class Checkpointed : public torch::autograd::Function<Checkpointed> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const c10::intrusive_ptr<Replay>& replay,
                            const at::Tensor& x, at::TensorList parameters) {
    variable_list saved{x};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["replay"] = c10::IValue::make_capsule(replay);
    const AutocastScope autocast(replay->autocast);
    if (replay->generator) replay->generator_state = state_of(*replay->generator);
    return replay->block(x);
  }

  static variable_list backward(torch::autograd::AutogradContext* context, const variable_list& gradients) {
    const auto replay = c10::static_intrusive_pointer_cast<Replay>(context->saved_data["replay"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor x = saved[0].detach().set_requires_grad(saved[0].requires_grad());
    variable_list inputs;
    std::vector<size_t> places;  // of the inputs among those of forward: the block itself is number 0
    for (size_t i = 0; i < saved.size(); ++i) {
      const at::Tensor& input = i == 0 ? x : saved[i];
      if (!input.requires_grad() || !context->needs_input_grad(i)) continue;
      inputs.push_back(input);
      places.push_back(i + 1);
    }
    at::Tensor y;
    {
      const at::AutoGradMode with_gradients(true);
      const RecomputingScope second_run;
      const AutocastScope autocast(replay->autocast);
      const RandomScope random(replay->generator, replay->generator_state);
      y = replay->block(x);
    }
    variable_list found = torch::autograd::grad({y}, inputs, {gradients[0]}, /*retain_graph=*/std::nullopt,
                                                /*create_graph=*/false, /*allow_unused=*/true);
    variable_list result(saved.size() + 1);
    for (size_t i = 0; i < found.size(); ++i) result[places[i]] = std::move(found[i]);
    return result;
  }
};

}  // namespace

at::Tensor run_checkpointed(const Block& block, const at::Tensor& x, at::TensorList parameters,
                            const std::optional<at::Generator>& generator) {
  if (!at::GradMode::is_enabled()) return block(x);
  auto replay = c10::make_intrusive<Replay>();
  replay->block = block;
  replay->autocast = AutocastState::of(x.device().type());
  replay->generator = generator;
  return Checkpointed::apply(replay, x, parameters);
}

bool is_recomputing() { return recomputing; }

}  // namespace skytrain::model
