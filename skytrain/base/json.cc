#include "skytrain/base/json.h"

#include <set>
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

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open, innermost last
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= kMaxDepth) refuse(where, str("nested deeper than ", kMaxDepth, " levels"));
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second) {
          refuse(where, str("key \"", printable(parsed.get<std::string>()), "\" appears twice in one object"));
        }
        break;
      default:
        break;
    }
    return true;
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
