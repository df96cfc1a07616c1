// skytrain/observe/flatten.h
//
// A JSON object of any shape as lines of key path and value, so that a page shows also what a later version adds.

#pragma once
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::observe {

// {"a": {"b": 1}, "c": [2, 3], "d": [{"e": "x"}]} -> a.b = 1, c = [2, 3], d[0].e = x. Strings are without quotes.
// Stops after `limit` lines with one that says so.
std::vector<std::pair<std::string, std::string>> flatten(const OrderedJson& json, size_t limit = 500);

// One value on one line, as flatten() shows it.
std::string value_text(const OrderedJson& value);

}  // namespace skytrain::observe
