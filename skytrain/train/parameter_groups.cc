#include "skytrain/train/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {

at::Tensor flat_slice(const at::Tensor& tensor, const ParameterSlice& slice) {
  TORCH_INTERNAL_ASSERT(tensor.is_non_overlapping_and_dense());
  return tensor.as_strided({slice.end - slice.begin}, {1}, tensor.storage_offset() + slice.begin);
}

std::vector<std::vector<ParameterSlice>> cut_parameters(const std::vector<tensor::NamedTensor>& parameters, int parts) {
  constexpr int64_t kCacheLine = 16;  // floats
  int64_t total = 0;
  for (const tensor::NamedTensor& parameter : parameters) total += parameter.tensor.numel();
  std::vector<std::vector<ParameterSlice>> result(parts);
  int64_t offset = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t size = parameters[i].tensor.numel();
    for (int part = 0; part < parts; ++part) {
      const auto cut = [&](int64_t at) {  // position in this parameter of the global cut `at`
        const int64_t local = std::clamp<int64_t>(at - offset, 0, size);
        return local == size ? size : local / kCacheLine * kCacheLine;
      };
      const int64_t begin = cut(total * part / parts), end = cut(total * (part + 1) / parts);
      if (begin < end) result[part].push_back({i, begin, end});
    }
    offset += size;
  }
  return result;
}

std::vector<ParameterSettings> settings_of(const recipe::OptimizerSpec& spec,
                                           const std::vector<tensor::NamedTensor>& parameters) {
  std::vector<ParameterSettings> settings;
  std::vector<bool> used(spec.groups.size()), decays(spec.groups.size());
  for (const tensor::NamedTensor& parameter : parameters) {
    ParameterSettings own{1, spec.weight_decay};
    for (size_t g = 0; g < spec.groups.size(); ++g) {
      const recipe::ParameterGroupSpec& group = spec.groups[g];
      if (fnmatch(group.match.c_str(), parameter.name.c_str(), 0) != 0) continue;
      used[g] = true;
      if (parameter.tensor.dim() > 1) decays[g] = true;
      own.lr_scale = group.lr_scale;
      if (group.weight_decay) own.weight_decay = *group.weight_decay;
      break;
    }
    if (spec.no_decay && parameter.tensor.dim() <= 1) own.weight_decay = 0;
    settings.push_back(own);
  }
  for (size_t g = 0; spec.no_decay && g < spec.groups.size(); ++g)
    if (spec.groups[g].weight_decay.value_or(0) > 0 && used[g] && !decays[g])
      throw Error(ErrorKind::kRecipe, str("train.optimizer.groups[", g, "].", printable(spec.groups[g].match, 60)),
                  "its weight_decay is without effect: it matches norms and biases only, which no_decay leaves alone",
                  "remove no_decay: true, and give the other norms and biases weight_decay: 0");
  if (std::all_of(settings.begin(), settings.end(), [](const ParameterSettings& own) { return own.lr_scale == 0; }))
    throw Error(ErrorKind::kRecipe, "train.optimizer.groups", "lr_scale 0 for every parameter leaves nothing to train");
  for (size_t g = 0; g < used.size(); ++g) {
    if (used[g]) continue;
    std::vector<std::string> names;
    names.reserve(parameters.size());
    for (const tensor::NamedTensor& parameter : parameters) names.push_back(parameter.name);
    const bool shadowed = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return fnmatch(spec.groups[g].match.c_str(), name.c_str(), 0) == 0;
    });
    const std::string pattern = printable(spec.groups[g].match, 60);
    if (names.size() > 8) names.resize(8), names.emplace_back("…");
    throw Error(
        ErrorKind::kRecipe, str("train.optimizer.groups[", g, "].", pattern),
        shadowed ? "an earlier group holds for every parameter that it matches" : "matches no parameter of the model",
        shadowed ? "put the more special pattern first" : "parameters: " + join(names, ", "));
  }
  return settings;
}

}  // namespace skytrain::train
