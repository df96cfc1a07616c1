#include "skytrain/data/folder_text.h"

#include "skytrain/base/text.h"

namespace skytrain::data {

std::string first_names(std::vector<std::string> names, size_t shown) {
  const size_t more = names.size() > shown ? names.size() - shown : 0;
  names.resize(names.size() - more);
  std::string text = join(names, ", ");
  if (more > 0) text += str(" and ", more, " more");
  return text;
}

std::string folder_content(const FileSystem& fs, const std::string& folder) {
  std::vector<std::string> names = fs.list(folder);
  if (names.empty()) return "the folder is empty";
  return "the folder holds: " + first_names(std::move(names));
}

}  // namespace skytrain::data
