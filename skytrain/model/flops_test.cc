#include "skytrain/model/flops.h"

#include <gtest/gtest.h>

#include "skytrain/model/model_test_data.h"

namespace skytrain::model {
namespace {

int64_t flops_of(const recipe::ModelSpec& spec, const InputShape& input) {
  const OneThread one_thread;
  const auto model = build_model(spec, input, at::detail::createCPUGenerator(0));
  return count_flops(*model, input);
}

TEST(CountFlops, OfAnMlpIsTwiceItsWeights) {
  recipe::ModelSpec spec = spec_of("mlp");
  spec.hidden = {300, 100};
  EXPECT_EQ(flops_of(spec, {1, 28, 28}), 2 * (784 * 300 + 300 * 100 + 100 * 10));
}

// Also where the first convolution runs in pieces (conv_relu.h).
TEST(CountFlops, OfAConvolutionIsKernelTimesOutput) {
  EXPECT_EQ(flops_of(spec_of("simplecnn"), {1, 28, 28}), 2 * (32 * 9 * 26 * 26 + 32 * 26 * 26 * 10));
  EXPECT_EQ(flops_of(spec_of("simplecnn"), {3, 28, 28}), 2 * (32 * 27 * 26 * 26 + 32 * 26 * 26 * 10));
}

// 1.814 and 4.089 GMAC: the convolutions and the last layer of torchvision's models, added up by hand; fvcore has 1.82
// and 4.11 with batch norm.
TEST(CountFlops, OfResnetsIsWhatEverybodyHas) {
  recipe::ModelSpec spec = spec_of("resnet18", 1000);
  spec.stem = "imagenet";
  EXPECT_EQ(flops_of(spec, {3, 224, 224}), 2 * int64_t(1'814'073'344));
  spec.name = "resnet50";
  EXPECT_EQ(flops_of(spec, {3, 224, 224}), 2 * int64_t(4'089'184'256));
}

TEST(CountFlops, LeavesTheModelAsItWas) {
  const InputShape input{3, 8, 8};
  const auto model = build(spec_of("convnet"), input);
  const auto before = copies(model->buffers());
  count_flops(*model, input);
  EXPECT_TRUE(model->training());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(same_bits(before[i], model->buffers()[i].tensor));
  EXPECT_EQ(count_flops(*model, input), count_flops(*model, input));
}

}  // namespace
}  // namespace skytrain::model
