// skytrain/base/json.h
//
// JSON by nlohmann-json, with errors of ours.

#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace skytrain {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order in which keys were added: for output that people read

// Throws Error(kData, where, "not valid JSON: …at byte N"). Nesting deeper than 64 and duplicate keys are refused.
Json parse_json(std::string_view text, const std::string& where);

// The same for an object with a long array under `key`: its elements are given to element(i, value), one after the
// other while the text is read, and are not kept. What is returned has an empty array there.
Json parse_json(std::string_view text, const std::string& where, std::string_view key,
                const std::function<void(uint64_t i, const Json& value)>& element);

// What an exception of nlohmann-json says, without its number and place, cut to a line of reasonable length.
std::string json_reason(const nlohmann::json::exception& error);

}  // namespace skytrain
