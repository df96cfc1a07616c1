#include "skytrain/data/webdataset_names.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"

namespace skytrain::data {
namespace {

constexpr size_t kMostShards = 1'000'000;
constexpr std::string_view kCompressed[] = {".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tzst"};

bool is_compressed(std::string_view name) {
  return std::any_of(std::begin(kCompressed), std::end(kCompressed),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

[[noreturn]] void refuse_compressed(const std::string& path) {
  throw Error(ErrorKind::kData, path, "is a compressed archive, which can't be read at any place",
              "unpack it to a .tar; pictures hardly shrink");
}

std::optional<int64_t> whole_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 15) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return negative ? -value : value;
}

// What stands within braces: "a,b,c", "000..146" or "0..10..2". Empty: nothing of the kind.
std::vector<std::string> alternatives(std::string_view inside) {
  std::vector<std::string> parts;
  const size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    if (inside.find(',') == std::string_view::npos) return {};
    for (size_t begin = 0; begin <= inside.size();) {
      const size_t comma = std::min(inside.find(',', begin), inside.size());
      parts.emplace_back(inside.substr(begin, comma - begin));
      begin = comma + 1;
    }
    return parts;
  }
  const std::string_view first = inside.substr(0, dots);
  std::string_view last = inside.substr(dots + 2);
  int64_t step = 1;
  if (const size_t more = last.find(".."); more != std::string_view::npos) {
    step = whole_number(last.substr(more + 2)).value_or(0);
    last = last.substr(0, more);
  }
  const std::optional<int64_t> from = whole_number(first), to = whole_number(last);
  step = step < 0 ? -step : step;
  if (!from || !to || *from < 0 || *to < 0 || step == 0) return {};
  const bool padded = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
  const size_t width = padded ? std::max(first.size(), last.size()) : 0;
  const int64_t count = (*from < *to ? *to - *from : *from - *to) / step + 1;
  if (count > static_cast<int64_t>(kMostShards)) return {};
  for (int64_t i = 0; i < count; ++i) {
    std::string number = std::to_string(*from < *to ? *from + i * step : *from - i * step);
    if (number.size() < width) number.insert(0, width - number.size(), '0');
    parts.push_back(std::move(number));
  }
  return parts;
}

}  // namespace

std::optional<WebdatasetName> split_webdataset_name(std::string_view member) {
  // The longest folder first, as the expression's greedy .*/ tries them; then none.
  for (size_t folder = member.rfind('/') + 1;; folder = folder < 2 ? 0 : member.rfind('/', folder - 2) + 1) {
    const std::string_view rest = member.substr(folder);
    const size_t dot = rest.find('.');
    if (dot != 0 && dot != std::string_view::npos && rest.find('/', dot) == std::string_view::npos) {
      WebdatasetName name{std::string(member.substr(0, folder + dot)), std::string(rest.substr(dot + 1))};
      for (char& c : name.field) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      return name;
    }
    if (folder == 0) return std::nullopt;
  }
}

bool is_webdataset_meta(std::string_view member) {
  // __[^/]*__($|/) at the beginning.
  const std::string_view top = member.substr(0, member.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return true;
  return member.substr(member.rfind('/') + 1).starts_with('.');
}

std::vector<std::string> expand_braces(std::string_view pattern, const std::string& where) {
  std::vector<std::string> names = {""};
  while (!pattern.empty()) {
    const size_t open = std::min(pattern.find('{'), pattern.size());
    for (std::string& name : names) name += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const size_t close = pattern.find('}');
    const std::vector<std::string> parts =
        close == std::string_view::npos ? std::vector<std::string>{} : alternatives(pattern.substr(1, close - 1));
    if (parts.empty()) {
      throw Error(ErrorKind::kRecipe, where,
                  str("\"", printable(pattern.substr(0, close == std::string_view::npos ? close : close + 1)),
                      "\" is no pattern of shards"),
                  "patterns are like shard-{000..146}.tar and {train,extra}.tar");
    }
    if (parts.size() > kMostShards / names.size()) {
      throw Error(ErrorKind::kRecipe, where, str("the pattern stands for more than ", kMostShards, " shards"));
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& part : parts) longer.push_back(name + part);
    }
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  return names;
}

std::vector<std::string> list_shards(const FileSystem& fs, const std::string& path, const std::string& where,
                                     std::vector<std::string>& passed_over) {
  const std::string expected = "expected a .tar file, a folder of them, or a pattern like shard-{000..146}.tar";
  const std::optional<FileInfo> info = fs.stat(path);
  if (info && info->type != FileInfo::Type::kDirectory) {
    if (is_compressed(path)) refuse_compressed(path);
    return {path};
  }
  if (!info) {
    if (path.find('{') == std::string::npos) {
      throw Error(ErrorKind::kData, path, "no such file or folder", expected);
    }
    std::vector<std::string> shards = expand_braces(path, where);
    for (const std::string& shard : shards) {
      if (is_compressed(shard)) refuse_compressed(shard);
      if (fs.exists(shard)) continue;
      throw Error(ErrorKind::kData, shard, "no such shard", str("it is one of ", shards.size(), " of ", path));
    }
    return shards;
  }
  std::vector<std::string> shards;
  std::string compressed;
  for (const std::string& name : fs.list(path)) {
    if (name.ends_with(".tar") && !name.starts_with('.')) {
      shards.push_back(str(path, "/", name));
    } else if (is_compressed(name)) {
      compressed = str(path, "/", name);
    } else if (!name.ends_with(".idx") && name != "pack.jsonl") {  // of DALI, of `data pack`
      passed_over.push_back(name);
    }
  }
  if (!compressed.empty()) refuse_compressed(compressed);
  if (shards.empty()) throw Error(ErrorKind::kData, path, "has no shards (*.tar)", folder_content(fs, path));
  return shards;
}

}  // namespace skytrain::data
