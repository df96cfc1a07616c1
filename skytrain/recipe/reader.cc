#include "skytrain/recipe/reader.h"

#include <algorithm>
#include <tuple>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::recipe {

Reader::Scope::Scope(Reader& reader, std::string_view part) : reader_(reader), length_(reader.path_.size()) {
  if (!reader.path_.empty() && !part.starts_with('[')) reader.path_ += '.';
  reader.path_ += part;
}

void Reader::problem(const Place& place, const std::string& what, const std::string& hint) {
  std::string where = sources_.describe(place);
  // "--set train.batch=0" names its key already.
  bool named = false;
  if (place.source == Place::Source::kSet) {
    const std::string& text = sources_.overrides[place.override_index];
    named = text.starts_with(path_) && text.find_first_of("=.[", path_.size()) == path_.size();
  }
  if (!named && !path_.empty()) where += ": " + path_;
  problems_.push_back({place, std::move(where), what, hint});
}

void Reader::throw_problems() {
  if (problems_.empty()) return;
  const auto order = [](const Problem& p) {
    return std::make_tuple(p.place.source, p.place.override_index, p.place.line, p.place.column);
  };
  std::stable_sort(problems_.begin(), problems_.end(),
                   [&](const Problem& a, const Problem& b) { return order(a) < order(b); });
  const Problem& first = problems_.front();
  std::string hint = first.hint;
  if (problems_.size() > 1) {
    constexpr size_t kNamed = 3;
    std::vector<std::string> others;
    for (size_t i = 1; i < problems_.size() && i <= kNamed; ++i) others.push_back(printable(problems_[i].where, 120));
    if (!hint.empty()) hint += "\n";
    hint +=
        str(problems_.size() - 1, problems_.size() == 2 ? " more problem: " : " more problems: ", join(others, "; "),
            problems_.size() - 1 > kNamed ? "; …" : "");
  }
  throw Error(ErrorKind::kRecipe, first.where, first.what, hint);
}

void Reader::record_origin(const Place& place) {
  Origin origin;
  if (place.source == Place::Source::kFile) origin.kind = Origin::Kind::kFile;
  if (place.source == Place::Source::kSet) origin.kind = Origin::Kind::kSet;
  if (place.source == Place::Source::kJson) return;  // origins were recorded when it was first resolved
  if (place.source != Place::Source::kNowhere) origin.place = sources_.describe(place);
  origins_[path_] = std::move(origin);
}

}  // namespace skytrain::recipe
