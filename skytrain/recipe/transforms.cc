#include "skytrain/recipe/transforms.h"

#include "skytrain/recipe/named_list.h"

namespace skytrain::recipe {
namespace {

const std::vector<std::string>& transform_names() {
  static const auto* const names = new std::vector<std::string>{"normalize", "pad_crop", "flip"};
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
    s->add("p", &TransformSpec::p, real({.min = 0, .max = 1}),
           "probability of exchanging left and right; in training only", {.only_for = {"flip"}});
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

NameRefusal refuse_transform(const std::string& name) {
  const std::string known = "known: " + join(transform_names(), ", ");
  if (std::find(transform_names().begin(), transform_names().end(), name) != transform_names().end()) return {};
  return {"unknown transform \"" + printable(name, 60) + "\"" + did_you_mean(name, transform_names()), known};
}

}  // namespace

void add_transforms(Section<DataSpec>& data) {
  auto& field = add_named_list(
      data, "transforms", &DataSpec::transforms,
      named_list("transform", "pad_crop: {pad: 2}", 64, &TransformSpec::name, transform_section(), refuse_transform),
      "applied in this order, each written `- name: {keys}`");
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
