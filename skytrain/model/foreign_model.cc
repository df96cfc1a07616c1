#include "skytrain/model/foreign_model.h"

#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/tensor/memory_budget.h"

namespace skytrain::model {

ForeignModel::ForeignModel(std::string file_, std::string called_, int64_t classes, at::ScalarType dtype)
    : file(std::move(file_)), called(std::move(called_)), classes_(classes), dtype_(dtype) {}

void ForeignModel::refuse(std::string what, std::string hint) const {
  throw Error(ErrorKind::kRecipe, file, std::move(what), std::move(hint));
}

void ForeignModel::adopt_parameter(const std::string& name, const at::Tensor& tensor) {
  for (const tensor::NamedTensor& known : parameters())
    if (known.tensor.is_same(tensor)) return;
  const std::string parameter = str("parameter \"", printable(name), "\" of the ", called);
  if (tensor.scalar_type() != dtype_)
    refuse(str(parameter, " is ", c10::toString(tensor.scalar_type()), ", training needs ", c10::toString(dtype_)),
           "convert the module to float32; train.precision chooses what it computes in");
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided)
    refuse(str(parameter, " is not a dense tensor on the CPU"), "move it to the CPU before saving");
  if (!tensor.is_non_overlapping_and_dense())
    refuse(str(parameter, " shares its memory with itself or has gaps in it"), "save a contiguous copy of it");
  if (!tensor.requires_grad())
    refuse(str(parameter, " is frozen (requires_grad is false)"),
           "let it require gradients, and freeze it by train.optimizer.groups with lr_scale: 0");
  if (!tensor.is_leaf()) refuse(str(parameter, " is computed from others"), "register the tensor that it comes from");
  add_parameter(name, tensor);
}

void ForeignModel::adopt_buffer(const std::string& name, const at::Tensor& tensor) {
  for (const tensor::NamedTensor& known : buffers())
    if (known.tensor.is_same(tensor)) return;
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided)
    refuse(str("buffer \"", printable(name), "\" of the ", called, " is not a dense tensor on the CPU"),
           "move it to the CPU before saving");
  add_buffer(name, tensor);
}

void ForeignModel::check_adopted() const {
  if (parameters().empty())
    refuse(str("the ", called, " has no parameters, so there is nothing to train"),
           "save the module itself, not a frozen or folded copy of it");
}

at::Tensor ForeignModel::forward(const at::Tensor& images) {
  const auto failed = [&](const std::string& why) {
    refuse(str("forward of the ", called, " failed for images ", tensor::shape_text(images.sizes()), ": ", why),
           "does the model fit the data's channels, height and width?");
  };
  tensor::take_last_out_of_memory();  // of others
  at::Tensor logits;
  try {
    logits = run(images);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    if (const auto out_of_memory = tensor::take_last_out_of_memory()) throw *out_of_memory;
    failed(one_line_of(failure));
  } catch (...) {
    failed("it threw something that is no std::exception");
  }
  check_logits(logits, images.size(0));
  return logits;
}

void ForeignModel::check_logits(const at::Tensor& logits, int64_t samples) const {
  if (!logits.defined()) refuse(str("forward of the ", called, " returns an undefined tensor"));
  const bool fits = logits.dim() == 2 && logits.size(0) == samples && logits.size(1) == classes_;
  if (fits && logits.is_floating_point()) return;
  refuse(str("forward of the ", called, " returns ", c10::toString(logits.scalar_type()), " ",
             tensor::shape_text(logits.sizes()), ", expected logits ", tensor::shape_text({samples, classes_})),
         "model.classes must be the number of the model's outputs");
}

std::string one_line(std::string_view message) {
  std::string_view first, last;
  for (size_t at = 0; at < message.size();) {
    const size_t end = std::min(message.find('\n', at), message.size());
    std::string_view line = message.substr(at, end - at);
    at = end + 1;
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    if (first.empty()) first = line;
    last = line;
  }
  const bool traceback = message.find("Traceback of TorchScript") != std::string_view::npos;
  std::string line(traceback ? last : first);
  for (const std::string_view prefix : {"RuntimeError: ", "builtins."})
    if (line.starts_with(prefix)) line.erase(0, prefix.size());
  while (line.ends_with('.')) line.pop_back();
  return printable(line, 400);
}

std::string one_line_of(const std::exception& failure) {
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&failure))
    return one_line(of_torch->what_without_backtrace());
  return one_line(failure.what());
}

}  // namespace skytrain::model
