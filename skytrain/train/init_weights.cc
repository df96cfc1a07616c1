#include "skytrain/train/init_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/tensor/state.h"
#include "skytrain/weights/weights.h"

namespace skytrain::train {
namespace {

constexpr size_t kMostDifferences = 6;

bool matches(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

std::string described(checkpoint::Dtype dtype, at::IntArrayRef shape) {
  return str(checkpoint::dtype_name(dtype), " ", tensor::shape_text(shape));
}

// Floating-point numbers are converted into each other; counters must be counters.
bool fits(const checkpoint::NamedArray& array, const at::Tensor& tensor) {
  return tensor.sizes() == at::IntArrayRef(array.shape) &&
         c10::isFloatingType(tensor::to_scalar_type(array.dtype)) == tensor.is_floating_point();
}

constexpr std::string_view kModel = "model.";

// Whether this is the state of a run (docs/checkpoint-format.md): its weights have a prefix, and its other parts too.
bool is_checkpoint(const std::vector<checkpoint::NamedArray>& arrays) {
  return !arrays.empty() && std::all_of(arrays.begin(), arrays.end(), [](const checkpoint::NamedArray& array) {
    return array.name.starts_with(kModel) || array.name.starts_with("optimizer.") || array.name.starts_with("ema.");
  });
}

// A pattern for init_except that would pass over these: "layer4.1.conv2.*" of "layer4.1.conv2.weight".
std::string pattern_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot) + ".*";
}

}  // namespace

std::vector<std::string> load_init_weights(const FileSystem& fs, const std::string& path,
                                           const std::vector<std::string>& except, model::Model& model) {
  const weights::Weights weights = weights::read_weights(fs, path);
  std::map<std::string, const checkpoint::NamedArray*> arrays;
  const bool of_checkpoint = is_checkpoint(weights.arrays);
  for (const checkpoint::NamedArray& array : weights.arrays) {
    if (!of_checkpoint)
      arrays[array.name] = &array;
    else if (array.name.starts_with(kModel))
      arrays[array.name.substr(kModel.size())] = &array;
  }

  std::vector<std::pair<at::Tensor, const checkpoint::NamedArray*>> copies;
  std::vector<std::string> differences, kept;
  std::string first;  // of the model's names that differ
  const auto differs = [&](const std::string& name, const std::string& what) {
    if (first.empty()) first = name;
    differences.push_back(what);
  };
  for (const auto* tensors : {&model.parameters(), &model.buffers()}) {
    for (const tensor::NamedTensor& item : *tensors) {
      const auto found = arrays.find(item.name);
      const checkpoint::NamedArray* const array = found == arrays.end() ? nullptr : found->second;
      if (found != arrays.end()) arrays.erase(found);
      if (matches(item.name, except)) {
        kept.push_back(item.name);
      } else if (array == nullptr) {
        if (!item.name.ends_with("num_batches_tracked")) differs(item.name, item.name + " is missing");
      } else if (!fits(*array, item.tensor)) {
        differs(item.name, str(item.name, " is ", described(array->dtype, array->shape), ", the model has ",
                               described(tensor::to_dtype(item.tensor.scalar_type()), item.tensor.sizes())));
      } else {
        copies.emplace_back(item.tensor.detach(), array);
      }
    }
  }
  for (const auto& [name, array] : arrays)
    if (!matches(name, except)) differences.push_back("the model has no " + name);
  if (!differences.empty()) {
    const size_t more = differences.size() - std::min(differences.size(), kMostDifferences);
    differences.resize(differences.size() - more);
    throw Error(ErrorKind::kData, path,
                str("does not fit the model: ", join(differences, "; "), more > 0 ? str("; and ", more, " more") : ""),
                copies.empty() ? "nothing of it fits: these are the weights of another model"
                : first.empty()
                    ? "name the architecture that they are of"
                    : str("to keep the model's own values there: model.init_except: [\"", pattern_of(first), "\"]"));
  }
  for (const std::string& pattern : except)
    if (std::none_of(kept.begin(), kept.end(), [&](const std::string& name) { return matches(name, {pattern}); }))
      throw Error(ErrorKind::kRecipe, "model.init_except",
                  "\"" + printable(pattern, 60) + "\" matches nothing in the model");

  const at::NoGradGuard no_grad;
  for (const auto& [tensor, array] : copies)
    tensor.copy_(at::from_blob(const_cast<std::byte*>(array->bytes.data()), array->shape,
                               at::TensorOptions().dtype(tensor::to_scalar_type(array->dtype))));
  std::vector<std::string> lines = {
      str("initial weights: ", copies.size(), " tensors of ", path, " (", weights::format_name(weights.format), ")")};
  if (!kept.empty()) lines.push_back(str("initial weights: ", kept.size(), " tensors keep the model's own values"));
  if (!weights.note.empty()) lines.push_back("initial weights: " + weights.note);
  return lines;
}

}  // namespace skytrain::train
