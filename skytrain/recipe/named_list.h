// skytrain/recipe/named_list.h
//
// A list in which each element is a mapping with one key, the element's name:
//   transforms:
//     - normalize: {mean: [0.1307], std: [0.3081]}

#pragma once
#include <functional>
#include <string>
#include <vector>

#include "skytrain/base/text.h"
#include "skytrain/recipe/codec.h"
#include "skytrain/recipe/section.h"

namespace skytrain::recipe {

// What is wrong with a name, and what to write instead; `what` empty: nothing.
struct NameRefusal {
  std::string what, hint;
};

// what: "transform"; example: "pad_crop: {pad: 2}".
template <class E>
Codec<std::vector<E>> named_list(const std::string& what, const std::string& example, size_t max_size,
                                 std::string E::*name, const Section<E>& section,
                                 std::function<NameRefusal(const std::string&)> refuse_name) {
  const Section<E>* const keys = &section;
  const auto read = [=](const Value& value, Reader& reader, E* out) {
    if (value.kind != Value::Kind::kMap || value.members.size() != 1) {
      const std::string found =
          value.kind == Value::Kind::kMap ? str("a mapping of ", value.members.size(), " keys") : value.describe();
      reader.problem(value.place, "is " + found + ", expected one " + what + " like `" + example + "`",
                     refuse_name("").hint);
      return false;
    }
    const Value::Member& member = value.members.front();
    const Reader::Scope scope(reader, printable(member.name, 60));
    if (const NameRefusal refusal = refuse_name(member.name); !refusal.what.empty()) {
      reader.problem(member.place, refusal.what, refusal.hint);
      return false;
    }
    out->*name = member.name;
    return keys->read(member.value, reader, out);
  };
  const auto write = [=](const E& element) {
    OrderedJson out = OrderedJson::object();
    out[element.*name] = keys->write(element);
    return out;
  };
  return list_of("list of " + what + "s", 0, max_size, false, Codec<E>{what, read, write});
}

// Adds such a list as a field. The keys of the elements record their own origins; the list has one only when nothing
// is in it.
template <class S, class E>
Field<S>& add_named_list(Section<S>& section, std::string key, std::vector<E> S::*member,
                         const Codec<std::vector<E>>& list, std::string help, FieldOptions options = {}) {
  Field<S>& field = section.add(std::move(key), member, list, std::move(help), std::move(options));
  field.read = [list, member](const Value& value, Reader& reader, S* out) {
    if (!list.read(value, reader, &(out->*member))) return false;
    if ((out->*member).empty()) reader.record_origin(value.place);
    return true;
  };
  return field;
}

}  // namespace skytrain::recipe
