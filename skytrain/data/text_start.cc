#include "skytrain/data/text_start.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"

namespace skytrain::data {

uint64_t text_size(const FileSystem& fs, const std::string& path, std::string_view kind) {
  const std::optional<FileInfo> info = fs.stat(path);
  const std::string expected = str("expected a ", kind, " file");
  if (!info) throw Error(ErrorKind::kData, path, "no such file", expected);
  if (info->type != FileInfo::Type::kFile) throw Error(ErrorKind::kData, path, "is no file, " + expected);
  if (info->size == 0) throw Error(ErrorKind::kData, path, "is empty (0 bytes)", expected);
  return info->size;
}

size_t text_start(std::string_view head, const std::string& path, std::string_view kind, const std::string& expected) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    throw Error(ErrorKind::kData, path, "is UTF-16", "save it as UTF-8");
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(head.data());
  const std::string content = describe_content({bytes, std::min<size_t>(head.size(), 512)});
  const bool is_text = content == "looks like text" || content.starts_with("starts with") ||
                       (kind == "JSONL" && content == "looks like JSON");
  if (!is_text) {
    throw Error(ErrorKind::kData, path, str("is no ", kind, " file: it ", content),
                content == "is gzip" ? "unpack it: gunzip" : expected);
  }
  return head.starts_with("\xef\xbb\xbf") ? 3 : 0;
}

}  // namespace skytrain::data
