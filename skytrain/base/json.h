// skytrain/base/json.h
//
// JSON by nlohmann-json, with errors of ours.

#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace skytrain {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order in which keys were added: for output that people read

// Throws Error(kData, where, "not valid JSON: …at byte N"). Nesting deeper than 64 and duplicate keys are refused.
Json parse_json(std::string_view text, const std::string& where);

}  // namespace skytrain
