#include "skytrain/train/shape_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/model_trial.h"

namespace skytrain::train {

void check_shapes(model::Model& model, const recipe::Recipe& recipe, const model::InputShape& input,
                  const std::vector<image::Size>& shapes) {
  if (shapes.size() == 1 && shapes[0] == image::Size{input.width, input.height}) return;
  const std::string key = recipe.data.buckets.empty() ? "data.progressive_resizing" : "data.buckets";
  for (const image::Size& shape : shapes) {
    try {
      const at::NoGradGuard no_grad;
      ModelTrial trial(model);
      model.forward(at::zeros({2, input.channels, shape.height, shape.width}));
    } catch (const tensor::OutOfMemory&) {
      throw;
    } catch (const std::exception& error) {
      const std::string what = error.what();  // LibTorch appends a stack trace
      throw Error(ErrorKind::kRecipe, key,
                  str("model ", recipe.model.name, " does not take pictures of ", shape.height, "x", shape.width, ": ",
                      what.substr(0, what.find('\n'))),
                  "use a model that pools its features, like resnet18, or remove the key");
    }
  }
}

}  // namespace skytrain::train
