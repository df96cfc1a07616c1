#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/model/layers.h"
#include "skytrain/model/zoo.h"

namespace skytrain::model {
namespace {

constexpr int64_t kChannels = 32, kKernel = 3;

class SimpleCnn final : public Model {
 public:
  SimpleCnn(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator, at::ScalarType dtype) {
    LayerBuilder builder{*this, std::move(generator), dtype};
    conv1_ = Conv2d(builder, "conv1", input.channels, kChannels, kKernel, /*padding=*/0, /*with_bias=*/true);
    fc1_ = Linear(builder, "fc1", kChannels * (input.height - kKernel + 1) * (input.width - kKernel + 1), spec.classes);
  }

  at::Tensor forward(const at::Tensor& images) override { return fc1_(conv1_.relu(images).flatten(1)); }

 private:
  Conv2d conv1_;
  Linear fc1_;
};

}  // namespace

std::unique_ptr<Model> build_simplecnn(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                       at::ScalarType dtype) {
  if (input.height < kKernel || input.width < kKernel)
    throw Error(
        ErrorKind::kRecipe, "model.name",
        str("simplecnn needs pictures of at least 3 x 3 pixels, the data has ", input.height, " x ", input.width));
  return std::make_unique<SimpleCnn>(spec, input, std::move(generator), dtype);
}

}  // namespace skytrain::model
