#include "skytrain/recipe/transforms.h"

namespace skytrain::recipe {
namespace {

const std::vector<std::string>& transform_names() {
  static const auto* const names = new std::vector<std::string>{"normalize", "pad_crop"};
  return *names;
}

const Section<TransformSpec>& transform_section() {
  static const Section<TransformSpec>* const section = [] {
    auto* s = new Section<TransformSpec>;
    s->selector = &TransformSpec::name;
    s->add("mean", &TransformSpec::mean, list_of("list of numbers", 1, 4096, false, real({.min = -1e6, .max = 1e6})),
           "subtracted from pixels scaled to [0, 1]; one value a channel, or one for all",
           {.required = true, .only_for = {"normalize"}});
    s->add("std", &TransformSpec::std,
           list_of("list of numbers, > 0", 1, 4096, false, real({.min = 0, .max = 1e6, .above_min = true})),
           "what the difference is divided by; as many values as mean", {.required = true, .only_for = {"normalize"}});
    s->add("pad", &TransformSpec::pad, integer({1, 1024}),
           "pixels of zeros on each side before a random crop to the old size; in training only",
           {.required = true, .only_for = {"pad_crop"}});
    s->check = [](const TransformSpec& t, const Value& value, Reader& reader) {
      if (t.mean.size() == t.std.size()) return;
      const Reader::Scope scope(reader, "std");
      reader.problem(value.find("std")->place,
                     str("has length ", t.std.size(), ", and mean has ", t.mean.size(), ": expected the same"));
    };
    return s;
  }();
  return *section;
}

bool read_transform(const Value& value, Reader& reader, TransformSpec* out) {
  const std::string known = "known: " + join(transform_names(), ", ");
  if (value.kind != Value::Kind::kMap || value.members.size() != 1) {
    const std::string found =
        value.kind == Value::Kind::kMap ? str("a mapping of ", value.members.size(), " keys") : value.describe();
    reader.problem(value.place, "is " + found + ", expected one transform like `pad_crop: {pad: 2}`", known);
    return false;
  }
  const Value::Member& member = value.members.front();
  const Reader::Scope scope(reader, printable(member.name, 60));
  if (std::find(transform_names().begin(), transform_names().end(), member.name) == transform_names().end()) {
    reader.problem(
        member.place,
        "unknown transform \"" + printable(member.name, 60) + "\"" + did_you_mean(member.name, transform_names()),
        known);
    return false;
  }
  out->name = member.name;
  return transform_section().read(member.value, reader, out);
}

}  // namespace

void add_transforms(Section<DataSpec>& data) {
  const Codec<TransformSpec> one{"transform", read_transform, [](const TransformSpec& t) {
                                   OrderedJson out = OrderedJson::object();
                                   out[t.name] = transform_section().write(t);
                                   return out;
                                 }};
  const Codec<std::vector<TransformSpec>> list = list_of("list of transforms", 0, 64, false, one);
  auto& field =
      data.add("transforms", &DataSpec::transforms, list, "applied in this order, each written `- name: {keys}`");
  // The keys of the elements record their own origins; the list has one only when nothing is in it.
  field.read = [list](const Value& value, Reader& reader, DataSpec* out) {
    if (!list.read(value, reader, &out->transforms)) return false;
    if (out->transforms.empty()) reader.record_origin(value.place);
    return true;
  };
  const auto list_document = field.document;
  field.document = [list_document](const std::string& path, const DocSink& sink) {
    list_document(path, sink);
    for (const std::string& name : transform_names()) {
      // A key of a transform belongs to one name, which the path states already.
      transform_section().document(path + "[i]." + name, [&](const KeyDoc& doc) {
        if (doc.only_for.front() != name) return;
        KeyDoc own = doc;
        own.only_for.clear();
        sink(own);
      });
    }
  };
}

}  // namespace skytrain::recipe
