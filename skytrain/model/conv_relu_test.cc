#include "skytrain/model/conv_relu.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace skytrain::model {
namespace {

struct Case {
  int64_t samples, in, out, size, kernel, padding;
  bool bias, needs_x;
  at::ScalarType dtype;
};

at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype, uint64_t seed, bool leaf = true) {
  return at::empty(shape, dtype).uniform_(-1, 1, at::detail::createCPUGenerator(seed)).set_requires_grad(leaf);
}

// Errors of sums go with their largest terms: those of a gradient over a batch are thousands.
bool close(const at::Tensor& ours, const at::Tensor& reference, double tolerance) {
  const double largest = std::max(1.0, reference.abs().max().item<double>());
  return ours.sub(reference).abs().max().item<double>() <= tolerance * largest;
}

class ConvRelu : public testing::TestWithParam<Case> {};

TEST_P(ConvRelu, IsReluOfConvolutionForwardAndBackward) {
  const Case& c = GetParam();
  struct Result {
    at::Tensor y, dx, dw, db;
  };
  const auto compute = [&](bool fused) {
    at::Tensor x = random({c.samples, c.in, c.size, c.size}, c.dtype, 1, c.needs_x);
    at::Tensor weight = random({c.out, c.in, c.kernel, c.kernel}, c.dtype, 2);
    at::Tensor bias = c.bias ? random({c.out}, c.dtype, 3) : at::Tensor();
    const at::Tensor y =
        fused ? conv_relu(x, weight, bias, c.padding) : at::conv2d(x, weight, bias, 1, c.padding).relu();
    y.mul(random(y.sizes(), c.dtype, 4, false)).sum().backward();
    return Result{y.detach(), x.grad(), weight.grad(), c.bias ? bias.grad() : at::Tensor()};
  };
  const Result ours = compute(true), reference = compute(false);
  const double tolerance = c.dtype == at::kDouble ? 1e-12 : 1e-5;
  EXPECT_TRUE(close(ours.y, reference.y, tolerance));
  EXPECT_TRUE(close(ours.dw, reference.dw, tolerance));
  if (c.bias) {
    EXPECT_TRUE(close(ours.db, reference.db, tolerance));
  }
  ASSERT_EQ(ours.dx.defined(), c.needs_x);
  if (c.needs_x) {
    EXPECT_TRUE(close(ours.dx, reference.dx, tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvRelu,
                         testing::Values(Case{32, 1, 32, 28, 3, 0, true, false, at::kFloat},  // piecewise, many pieces
                                         Case{33, 1, 32, 28, 3, 0, true, true, at::kFloat},   // a short last piece
                                         Case{5, 1, 8, 9, 3, 1, false, true, at::kDouble},    // padding, no bias
                                         Case{2, 1, 64, 64, 1, 0, true, true, at::kDouble},   // one sample a piece
                                         Case{1, 1, 4, 3, 3, 0, true, false, at::kDouble},    // one value a channel
                                         Case{4, 8, 8, 12, 3, 1, true, true,
                                              at::kFloat}));  // whole: many kernel values

TEST(ConvRelu, UnderAutocastRoundsItsResultAndKeepsFullPrecisionGradients) {
  at::Tensor x = random({16, 1, 28, 28}, at::kFloat, 1, false), weight = random({32, 1, 3, 3}, at::kFloat, 2),
             bias = random({32}, at::kFloat, 3);
  const at::Tensor exact = conv_relu(x, weight, bias, 0);
  exact.sum().backward();
  const at::Tensor exact_gradient = weight.grad().clone();
  weight.mutable_grad().reset();

  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::increment_nesting();
  const at::Tensor rounded = conv_relu(x, weight, bias, 0);
  at::autocast::clear_cache();
  at::autocast::decrement_nesting();
  at::autocast::set_autocast_enabled(at::kCPU, false);

  EXPECT_EQ(rounded.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(rounded.to(at::kFloat), exact, 1e-2, 1e-2));
  rounded.sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(weight.grad(), exact_gradient, 1e-2, 1e-1));
}

}  // namespace
}  // namespace skytrain::model
