#include "skytrain/cli/metric_text.h"

#include <map>

#include "skytrain/base/text.h"

namespace skytrain::cli {

std::string metric_title(const std::string& name) {
  static const std::map<std::string, std::string> titles = {
      {"top1", "top-1"}, {"top5", "top-5"}, {"f1", "F1"}, {"accuracy", "accuracy"}, {"rmse", "RMSE"}};
  const auto found = titles.find(name);
  return found == titles.end() ? "" : found->second;
}

std::string metric_value(const std::string& name, double value) {
  return name == "rmse" ? formatted("%.4g", value) : formatted("%.2f", value * 100) + " %";
}

}  // namespace skytrain::cli
