#include "skytrain/base/json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

constexpr int kMaxDepth = 64;

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Error(ErrorKind::kData, where, "not valid JSON: " + why);
}

}  // namespace

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …" -> "syntax error …"
std::string json_reason(const nlohmann::json::exception& error) {
  std::string text = error.what();
  const size_t bracket = text.find("] ");
  if (bracket != std::string::npos) text.erase(0, bracket + 2);
  if (text.starts_with("parse error at ")) {
    const size_t colon = text.find(": ");
    if (colon != std::string::npos) text.erase(0, colon + 2);
  }
  return printable(text, 300);
}

Json parse_json(std::string_view text, const std::string& where) { return parse_json(text, where, "", nullptr); }

Json parse_json(std::string_view text, const std::string& where, std::string_view key,
                const std::function<void(uint64_t i, const Json& value)>& element) {
  // To the parser it would be the end, and what follows would go unseen.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) refuse(where, str("NUL at byte ", nul));
  std::vector<std::vector<std::string>> keys;  // of the objects that are open, innermost last
  bool in_array = false;                       // in that of `key`, whose elements are at depth 2
  uint64_t elements = 0;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= kMaxDepth) refuse(where, str("nested deeper than ", kMaxDepth, " levels"));
        if (depth == 1) {
          in_array = element && event == Json::parse_event_t::array_start && !keys.empty() && keys.back().back() == key;
        }
        return true;
      case Json::parse_event_t::key: {
        const std::string& name = parsed.get_ref<const std::string&>();
        keys.back().push_back(name);
        return true;
      }
      case Json::parse_event_t::object_end: {
        // Twice is looked for once all are there: sorting is faster than a set.
        std::vector<std::string>& names = keys.back();
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) refuse(where, str("key \"", printable(*twice), "\" appears twice in one object"));
        keys.pop_back();
        break;
      }
      default:
        break;
    }
    if (!in_array || depth != 2) {
      if (depth == 1) in_array = false;
      return true;
    }
    element(elements++, parsed);
    return false;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    refuse(where, str(json_reason(error), " at byte ", error.byte));
  } catch (const Json::exception& error) {
    refuse(where, json_reason(error));
  }
}

}  // namespace skytrain
