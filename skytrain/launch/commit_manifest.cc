#include "skytrain/launch/commit_manifest.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr char kFormat[] = "skytrain-commit";
constexpr int kVersion = 1;

// Neither absolute nor with an empty part, "." or "..".
bool stays_inside(const std::string& path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string format_commit(const Commit& commit) {
  OrderedJson files = OrderedJson::array();
  for (const Commit::File& file : commit.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"xxh128", file.xxh128}});
  }
  const OrderedJson json = {{"format", kFormat},
                            {"version", kVersion},
                            {"sequence", commit.sequence},
                            {"name", commit.name},
                            {"source", commit.source},
                            {"type", commit.folder ? "folder" : "file"},
                            {"committed_unix_seconds", commit.committed_unix_seconds},
                            {"files", files},
                            {"directories", commit.directories}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Commit parse_commit(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  Commit commit;
  try {
    if (json.at("format") != kFormat) throw Error(ErrorKind::kData, where, "is no manifest of a commit");
    if (json.at("version") != kVersion) {
      throw Error(ErrorKind::kData, where, str("is of format version ", json.at("version").dump(), ", not ", kVersion));
    }
    commit.sequence = json.at("sequence");
    commit.name = json.at("name");
    commit.source = json.at("source");
    commit.folder = json.at("type") == "folder";
    commit.committed_unix_seconds = json.at("committed_unix_seconds");
    for (const Json& file : json.at("files")) {
      commit.files.push_back({file.at("path"), file.at("bytes"), file.at("xxh128")});
    }
    for (const Json& path : json.at("directories")) commit.directories.push_back(path);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kData, where, "is no manifest of a commit: " + json_reason(error));
  }
  bool good = stays_inside(commit.name) && commit.name.find('/') == std::string::npos;
  for (const Commit::File& file : commit.files) {
    good = good && (commit.folder ? stays_inside(file.path) : file.path.empty());
  }
  if (!commit.folder && commit.files.size() != 1) good = false;
  if (!good) throw Error(ErrorKind::kData, where, "names files outside of its commit");
  return commit;
}

}  // namespace skytrain::launch
