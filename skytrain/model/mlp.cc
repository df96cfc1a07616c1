#include <ATen/ops/relu.h>

#include "skytrain/model/layers.h"
#include "skytrain/model/zoo.h"

namespace skytrain::model {
namespace {

class Mlp final : public Model {
 public:
  Mlp(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator, at::ScalarType dtype) {
    LayerBuilder builder{*this, std::move(generator), dtype};
    int64_t width = input.channels * input.height * input.width;
    for (int64_t next : spec.hidden) {
      layers_.emplace_back(builder, "fc" + std::to_string(layers_.size() + 1), width, next);
      width = next;
    }
    layers_.emplace_back(builder, "fc" + std::to_string(layers_.size() + 1), width, spec.classes);
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = images.flatten(1);
    for (size_t i = 0; i + 1 < layers_.size(); ++i) x = layers_[i](x).relu_();
    return layers_.back()(x);
  }

 private:
  std::vector<Linear> layers_;
};

}  // namespace

std::unique_ptr<Model> build_mlp(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                 at::ScalarType dtype) {
  return std::make_unique<Mlp>(spec, input, std::move(generator), dtype);
}

}  // namespace skytrain::model
