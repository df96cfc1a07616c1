// skytrain/cli/metric_text.h
//
// Metrics of an evaluation in words.

#pragma once
#include <string>

namespace skytrain::cli {

std::string metric_title(const std::string& name);                // "top1" -> "top-1"; "": no metric of ours
std::string metric_value(const std::string& name, double value);  // "97.31 %", "0.0834"

}  // namespace skytrain::cli
