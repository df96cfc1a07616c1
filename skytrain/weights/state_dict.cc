#include "skytrain/weights/state_dict.h"

#include <algorithm>
#include <optional>

namespace skytrain::weights {
namespace {

using Kind = PickleKind;

// Where people put a state dict that they save beside other things, in the order of preference.
constexpr std::string_view kUsualKeys[] = {"state_dict", "model", "model_state_dict", "module"};
constexpr int kMaxWrapping = 4;
constexpr size_t kMaxName = 4096;
constexpr char kSaveTheDict[] = "in Python: torch.save(model.state_dict(), FILE)";

class Finder {
 public:
  Finder(const PickleValues& values, const Refusal& refuse) : values_(values), refuse_(refuse), seen_(values.size()) {}

  StateDict find(PickleRef at) {
    if (!values_.is(at, Kind::kDict)) {
      refuse_(str("holds ", kind_words(values_.kind(at)), ", not a dict of named tensors"), kSaveTheDict);
    }
    StateDict found;
    std::vector<std::string> path;
    while (const std::optional<Pair> inner = wrapped(at)) {
      if (path.size() == kMaxWrapping) refuse_(str("wraps its weights in more than ", kMaxWrapping, " dicts"));
      path.push_back(str("\"", printable(values_.text(inner->key)), "\""));
      found.ignored += values_.count(at) / 2 - 1;
      at = inner->value;
    }
    if (!path.empty()) found.note = str("took the state dict under ", join(path, "."));
    take(at, found);
    return found;
  }

 private:
  struct Pair {
    PickleRef key, value;
  };

  template <class Visit>  // bool(Pair): whether to go on
  void each(PickleRef dict, Visit visit) const {
    PickleRef key = 0;
    bool is_key = true;
    for (const PickleRef ref : values_.children(dict)) {
      if (!is_key && !visit(Pair{key, ref})) return;
      key = ref;
      is_key = !is_key;
    }
  }

  bool is_tensor(const Pair& pair) const {
    return values_.is(pair.key, Kind::kString) && values_.is(pair.value, Kind::kTensor);
  }
  bool holds_tensors(PickleRef dict) const {
    bool found = false;
    each(dict, [&](const Pair& pair) { return !(found = is_tensor(pair)); });
    return found;
  }
  std::optional<Pair> entry(PickleRef dict, std::string_view key) const {
    std::optional<Pair> found;
    each(dict, [&](const Pair& pair) {
      if (values_.is(pair.key, Kind::kString) && values_.text(pair.key) == key) found = pair;  // the last one counts
      return true;
    });
    return found;
  }

  // The entry in which the state dict is; nothing when `dict` is it.
  std::optional<Pair> wrapped(PickleRef dict) {
    // A value of a state dict is never a dict of tensors, so the usual keys win over tensors that stand beside them.
    std::vector<Pair> usual;
    for (const std::string_view key : kUsualKeys) {
      const std::optional<Pair> pair = entry(dict, key);
      if (!pair || !values_.is(pair->value, Kind::kDict)) continue;
      if (holds_tensors(pair->value)) return pair;
      usual.push_back(*pair);
    }
    for (const Pair& pair : usual) {
      for (const std::string_view key : kUsualKeys) {
        const std::optional<Pair> inner = entry(pair.value, key);
        if (inner && values_.is(inner->value, Kind::kDict)) return pair;
      }
    }
    return only_dict_of_tensors(dict);
  }

  // {"net": {…}, "epoch": 3}: a key of the writer's own, clear as long as there is one.
  std::optional<Pair> only_dict_of_tensors(PickleRef dict) {
    std::optional<Pair> only;
    std::vector<std::string> keys;
    seen_[dict] = true;
    each(dict, [&](const Pair& pair) {
      if (!values_.is(pair.value, Kind::kDict) || seen_[pair.value]) return true;
      seen_[pair.value] = true;  // each is looked through once, however often it is there
      const bool named = values_.is(pair.key, Kind::kString);
      // What a module's get_extra_state() returned stands in the state dict itself.
      if (named && values_.text(pair.key).ends_with("_extra_state")) return true;
      if (!named || !holds_tensors(pair.value)) return true;
      only = pair;
      keys.push_back(str("\"", printable(values_.text(pair.key)), "\""));
      return keys.size() < 4;
    });
    if (keys.empty()) return std::nullopt;
    if (keys.size() > 1) {
      refuse_(
          str("holds several dicts of tensors (", join(keys, ", "), "), none under a usual key (", usual_keys(), ")"),
          "save the one that is meant alone");
    }
    if (holds_tensors(dict)) {
      refuse_(str("holds tensors and beside them a dict of tensors, ", keys[0], ": which are the weights is not clear"),
              "save the one that is meant alone");
    }
    return only;
  }

  static std::string usual_keys() {
    std::vector<std::string> keys;
    for (const std::string_view key : kUsualKeys) keys.push_back(str("\"", key, "\""));
    return join(keys, ", ");
  }

  void take(PickleRef dict, StateDict& found) const {
    each(dict, [&](const Pair& pair) {
      if (!is_tensor(pair)) {
        ++found.ignored;
        return true;
      }
      const std::string_view name = values_.text(pair.key);
      if (name.size() > kMaxName) refuse_(str("names a tensor with ", name.size(), " bytes (limit ", kMaxName, ")"));
      if (invalid_utf8_at(name) != name.npos) refuse_.tensor(name, "has a name that is not UTF-8");
      found.entries.push_back({name, pair.value});
      return true;
    });
    if (found.entries.empty() && values_.count(dict) > 0) {
      refuse_(str("holds no tensors under names, but ", values_.count(dict) / 2, " other entries"), kSaveTheDict);
    }
    std::vector<std::string_view> names;
    for (const StateDict::Entry& entry : found.entries) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) refuse_.tensor(*twice, "is there twice");
  }

  const PickleValues& values_;
  const Refusal& refuse_;
  std::vector<bool> seen_;
};

}  // namespace

StateDict find_state_dict(const PickleValues& values, PickleRef root, const Refusal& refuse) {
  return Finder(values, refuse).find(root);
}

}  // namespace skytrain::weights
