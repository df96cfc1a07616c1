// skytrain/recipe/section.h
//
// A section of a recipe (a mapping with known keys) as a list of fields. Each key is declared once, with its codec, its
// help line and what it belongs to; reading, JSON, --explain, the reference and the comparison of recipes walk the
// list. Sections are built once, never moved (fields point to their section), and are then safe to share between
// threads.

#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/text.h"
#include "skytrain/recipe/codec.h"

namespace skytrain::recipe {

// Whether a value must be the same for one run to be the continuation of another.
enum class Continuity { kMustMatch, kMayChange, kAutoMatchesAll };

// What the reference says of a key.
struct KeyDoc {
  std::string path, type, default_text, help;
  std::vector<std::string> only_for;
};

struct FieldOptions {
  bool required = false;
  std::vector<std::string> only_for;      // names of the section (model: mlp, …) that take the key; empty: all
  std::vector<std::string> optional_for;  // names of these that do not require it, where it is required
  Continuity continuity = Continuity::kMustMatch;
};

// The member-independent part of a field.
struct FieldInfo {
  std::string name, type, help;
  FieldOptions options;
  bool takes(const std::string& section_name) const {
    return options.only_for.empty() || is_one_of(section_name, options.only_for);
  }
  bool is_optional_for(const std::string& section_name) const { return is_one_of(section_name, options.optional_for); }

 private:
  static bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
};

using LeafSink = std::function<void(const std::string& path, Continuity, const OrderedJson&)>;
using DocSink = std::function<void(const KeyDoc&)>;

template <class S>
struct Field {
  FieldInfo info;
  std::function<bool(const Value&, Reader&, S*)> read;
  std::function<void(const Place& section, Reader&, S*)> read_absent;  // records the defaults
  std::function<OrderedJson(const S&)> write;
  std::function<bool(const S&)> present;  // false: another key says it (epochs, steps)
  std::function<void(const std::string& path, Continuity, const S&, const LeafSink&)> leaves;
  std::function<void(const std::string& path, const DocSink&)> document;
};

// How messages and the reference show a value.
std::string yaml_text(const OrderedJson& leaf);

// "momentum" -> "train.optimizer.momentum": where in a recipe a key of this name stands ("a" or "a or b"); "" if
// nowhere.
std::string where_key_belongs(const std::string& name);

template <class S>
class Section {
 public:
  Section() = default;
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  // The member that decides which keys belong here (name, format), which must be the first field.
  std::string S::*selector = nullptr;
  // Before reading: settles keys that replace each other.
  std::function<void(Value*)> prepare;
  // Rules between keys; called when every key could be read.
  std::function<void(const S&, const Value&, Reader&)> check;

  template <class T>
  Field<S>& add(std::string name, T S::*member, Codec<T> codec, std::string help, FieldOptions options = {}) {
    return add_translated<T>(
        std::move(name), std::move(codec), [member](const S& s) { return s.*member; },
        [member](S* s, const T& value) { s->*member = value; }, std::move(help), std::move(options));
  }

  // For values that are not one member: `get` and `set` translate.
  template <class T>
  Field<S>& add_translated(std::string name, Codec<T> codec, std::function<T(const S&)> get,
                           std::function<void(S*, const T&)> set, std::string help, FieldOptions options = {}) {
    Field<S>& field = new_field(std::move(name), codec.type, std::move(help), std::move(options));
    field.read = [=](const Value& value, Reader& reader, S* s) {
      T read{};
      if (!codec.read(value, reader, &read)) return false;
      set(s, read);
      reader.record_origin(value.place);
      return true;
    };
    field.write = [=](const S& s) { return codec.write(get(s)); };
    return field;
  }

  // A mapping with its own keys.
  template <class C>
  void add_section(std::string name, C S::*member, const Section<C>& section, std::string help,
                   FieldOptions options = {}) {
    const bool required = options.required;
    Field<S>& field = new_field(std::move(name), "mapping", std::move(help), std::move(options));
    const Section<C>* const child = &section;
    field.read = [=](const Value& value, Reader& reader, S* s) { return child->read(value, reader, &(s->*member)); };
    if (!required) {
      field.read_absent = [=](const Place&, Reader& reader, S* s) {
        child->read(Value{.kind = Value::Kind::kMap}, reader, &(s->*member));
      };
    }
    field.write = [=](const S& s) { return child->write(s.*member); };
    field.leaves = [=](const std::string& path, Continuity continuity, const S& s, const LeafSink& sink) {
      child->leaves(path, continuity, s.*member, sink);
    };
    field.document = [=](const std::string& path, const DocSink& sink) { child->document(path, sink); };
  }

  // A mapping that may be absent or null.
  template <class C>
  void add_optional_section(std::string name, std::optional<C> S::*member, const Section<C>& section,
                            std::string help) {
    Field<S>& field = new_field(std::move(name), "mapping, or null", std::move(help), {});
    const Section<C>* const child = &section;
    field.read = [=](const Value& value, Reader& reader, S* s) {
      (s->*member).reset();
      if (value.kind == Value::Kind::kNull) {
        reader.record_origin(value.place);
        return true;
      }
      return child->read(value, reader, &(s->*member).emplace());
    };
    field.write = [=](const S& s) { return s.*member ? child->write(*(s.*member)) : OrderedJson(nullptr); };
    field.leaves = [=](const std::string& path, Continuity continuity, const S& s, const LeafSink& sink) {
      if (s.*member) return child->leaves(path, continuity, *(s.*member), sink);
      sink(path, continuity, nullptr);
    };
    const auto leaf_document = field.document;
    field.document = [=](const std::string& path, const DocSink& sink) {
      leaf_document(path, sink);
      child->document(path, sink);
    };
  }

  bool read(const Value& value, Reader& reader, S* out) const;
  OrderedJson write(const S& s) const;
  void leaves(const std::string& path, Continuity continuity, const S& s, const LeafSink& sink) const;
  void document(const std::string& path, const DocSink& sink) const;

  std::vector<std::string> keys_of(const S& s) const {
    std::vector<std::string> names;
    for (const Field<S>& field : fields_) {
      if (takes(field, s)) names.push_back(field.info.name);
    }
    return names;
  }

 private:
  static std::string child_path(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }

  // Does `map` have an unknown key that is close to the missing `name`?
  bool misspelt(const Value& map, const std::string& name) const {
    for (const Value::Member& member : map.members) {
      const bool known = std::any_of(fields_.begin(), fields_.end(),
                                     [&](const Field<S>& field) { return field.info.name == member.name; });
      if (!known && closest(member.name, {name}) == name) return true;
    }
    return false;
  }

  bool takes(const Field<S>& field, const S& s) const { return selector == nullptr || field.info.takes(s.*selector); }

  Field<S>& new_field(std::string name, std::string type, std::string help, FieldOptions options);

  std::vector<Field<S>> fields_;
};

template <class S>
Field<S>& Section<S>::new_field(std::string name, std::string type, std::string help, FieldOptions options) {
  fields_.push_back({FieldInfo{std::move(name), std::move(type), std::move(help), std::move(options)}});
  const size_t index = fields_.size() - 1;
  Field<S>& field = fields_.back();
  field.present = [](const S&) { return true; };
  field.read_absent = [](const Place&, Reader& reader, S*) { reader.record_origin(Place{}); };
  field.leaves = [this, index](const std::string& path, Continuity continuity, const S& s, const LeafSink& sink) {
    sink(path, continuity, fields_[index].write(s));
  };
  field.document = [this, index](const std::string& path, const DocSink& sink) {
    const Field<S>& self = fields_[index];
    std::string default_text = "required";
    if (!self.info.options.required) default_text = self.present(S{}) ? yaml_text(self.write(S{})) : "";
    sink({path, self.info.type, default_text, self.info.help, self.info.options.only_for});
  };
  return field;
}

template <class S>
bool Section<S>::read(const Value& value, Reader& reader, S* out) const {
  if (value.kind != Value::Kind::kMap) {
    reader.problem(value.place,
                   value.kind == Value::Kind::kNull ? "has no value, expected a mapping"
                                                    : "is " + value.describe() + ", expected a mapping",
                   "its keys: " + join(keys_of(*out), ", "));
    return false;
  }
  const size_t problems_before = reader.problems();
  Value map = value;
  if (prepare) prepare(&map);
  bool selected = true;  // false: the name is missing or unknown, so which keys belong here is unknown too
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field<S>& field = fields_[i];
    const Reader::Scope scope(reader, field.info.name);
    const Value* const given = map.find(field.info.name);
    if (selected && !takes(field, *out)) {
      if (given != nullptr) {
        reader.problem(given->place,
                       "\"" + out->*selector + "\" does not take this key (" + join(field.info.options.only_for, ", ") +
                           (field.info.options.only_for.size() == 1 ? " does)" : " do)"),
                       "keys of " + out->*selector + ": " + join(keys_of(*out), ", "));
      }
      continue;
    }
    bool ok = true;
    const bool required =
        field.info.options.required && (selector == nullptr || !field.info.is_optional_for(out->*selector));
    if (given != nullptr) {
      ok = field.read(*given, reader, out);
    } else if (required && misspelt(map, field.info.name)) {
      ok = false;  // reported as an unknown key, with this one as the suggestion
    } else if (required && (selected || field.info.options.only_for.empty())) {
      reader.problem(map.place, "is missing", field.info.help + " (" + field.info.type + ")");
      ok = false;
    } else {
      field.read_absent(map.place, reader, out);
    }
    if (i == 0 && selector != nullptr && !ok) selected = false;
  }
  std::vector<std::string> known;
  for (const Field<S>& field : fields_) known.push_back(field.info.name);
  for (const Value::Member& member : map.members) {
    if (std::find(known.begin(), known.end(), member.name) != known.end()) continue;
    const Reader::Scope scope(reader, printable(member.name, 60));
    const std::vector<std::string> candidates = selected ? keys_of(*out) : known;

    const std::string elsewhere = where_key_belongs(member.name);
    reader.problem(
        member.place, "unknown key \"" + printable(member.name, 60) + "\"" + did_you_mean(member.name, candidates),
        "known: " + join(candidates, ", ") + (elsewhere.empty() ? "" : "\nit belongs elsewhere: " + elsewhere));
  }
  if (reader.problems() != problems_before) return false;
  if (check) check(*out, map, reader);
  return reader.problems() == problems_before;
}

template <class S>
OrderedJson Section<S>::write(const S& s) const {
  OrderedJson out = OrderedJson::object();
  for (const Field<S>& field : fields_) {
    if (takes(field, s) && field.present(s)) out[field.info.name] = field.write(s);
  }
  return out;
}

template <class S>
void Section<S>::leaves(const std::string& path, Continuity continuity, const S& s, const LeafSink& sink) const {
  for (const Field<S>& field : fields_) {
    if (!takes(field, s) || !field.present(s)) continue;
    const Continuity own = field.info.options.continuity;
    field.leaves(child_path(path, field.info.name), own == Continuity::kMustMatch ? continuity : own, s, sink);
  }
}

template <class S>
void Section<S>::document(const std::string& path, const DocSink& sink) const {
  for (const Field<S>& field : fields_) field.document(child_path(path, field.info.name), sink);
}

}  // namespace skytrain::recipe
