#include "skytrain/base/run_name.h"

#include <string_view>

namespace skytrain {

std::string refuse_run_name(const std::string& name) {
  if (name.empty()) return "is empty";
  if (name.size() > 100) return "is longer than 100 characters";
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && std::string_view("._-+=").find(c) == std::string_view::npos) {
      return "names a folder, so it takes letters, digits and . _ - + = only";
    }
  }
  if (name.front() == '.' || name.front() == '-') {
    return "starts with \"" + name.substr(0, 1) + "\", expected a letter or digit";
  }
  return {};
}

}  // namespace skytrain
