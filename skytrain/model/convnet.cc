#include <ATen/ops/max_pool2d.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/model/activation_checkpointing.h"
#include "skytrain/model/layers.h"
#include "skytrain/model/zoo.h"

namespace skytrain::model {
namespace {

class ConvNet final : public Model {
 public:
  ConvNet(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator, at::ScalarType dtype) {
    LayerBuilder builder{*this, std::move(generator), dtype};
    const int64_t channels[] = {input.channels, spec.width, spec.width, 2 * spec.width, 2 * spec.width};
    for (int i = 0; i < 4; ++i) {
      const std::string number = std::to_string(i + 1);
      convs_[i] = Conv2d(builder, "conv" + number, channels[i], channels[i + 1], /*kernel=*/3, /*padding=*/1,
                         /*with_bias=*/false);
      norms_[i] = BatchNorm2d(builder, "bn" + number, channels[i + 1]);
    }
    fc_ = Linear(builder, "fc", channels[4] * (input.height / 4) * (input.width / 4), spec.classes);
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = images;
    for (const int first : {0, 2}) {
      const auto block = [this, first, with_statistics = training()](at::Tensor y) {
        for (const int i : {first, first + 1}) y = norms_[i](convs_[i](y), with_statistics).relu_();
        return at::max_pool2d(y, 2);
      };
      x = activation_checkpointing() ? run_checkpointed(block, x, parameters_of({first, first + 1})) : block(x);
    }
    return fc_(x.flatten(1));
  }

 private:
  bool has_blocks() const override { return true; }

  std::vector<at::Tensor> parameters_of(std::initializer_list<int> layers) const {
    std::vector<at::Tensor> all;
    for (const int i : layers) all.insert(all.end(), {convs_[i].weight, norms_[i].weight, norms_[i].bias});
    return all;
  }

  Conv2d convs_[4];
  BatchNorm2d norms_[4];
  Linear fc_;
};

}  // namespace

std::unique_ptr<Model> build_convnet(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                     at::ScalarType dtype) {
  if (input.height < 4 || input.width < 4)
    throw Error(ErrorKind::kRecipe, "model.name",
                str("convnet halves pictures twice: it needs at least 4 x 4 pixels, the data has ", input.height, " x ",
                    input.width));
  return std::make_unique<ConvNet>(spec, input, std::move(generator), dtype);
}

}  // namespace skytrain::model
