#include "skytrain/recipe/transforms.h"

#include "skytrain/recipe/named_list.h"

namespace skytrain::recipe {
namespace {

const std::vector<std::string>& transform_names() {
  static const auto* const names = new std::vector<std::string>{
      "normalize", "pad_crop", "flip", "random_resized_crop", "color_jitter", "rand_augment", "random_erasing"};
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
           "probability: of exchanging left and right, of erasing; in training only",
           {.only_for = {"flip", "random_erasing"}});
    const auto range =
        list_of("list of two numbers, > 0", 0, 2, false, real({.min = 0, .max = 100, .above_min = true}));
    s->add("scale", &TransformSpec::scale, range,
           "least and largest share of the area: of the picture that is cut out (default [0.08, 1]); of the sample "
           "that is "
           "erased (default [0.02, 0.33])",
           {.only_for = {"random_resized_crop", "random_erasing"}});
    s->add(
        "ratio", &TransformSpec::ratio, range,
        "least and largest aspect ratio: width to height of what is cut out (default [3/4, 4/3]); height to width of "
        "what is erased (default [0.3, 3.3])",
        {.only_for = {"random_resized_crop", "random_erasing"}});
    const auto factor = real({.min = 0, .max = 100});
    s->add("brightness", &TransformSpec::brightness, factor, "largest change: a factor from 1 - it to 1 + it",
           {.only_for = {"color_jitter"}});
    s->add("contrast", &TransformSpec::contrast, factor, "the same", {.only_for = {"color_jitter"}});
    s->add("saturation", &TransformSpec::saturation, factor, "the same", {.only_for = {"color_jitter"}});
    s->add("hue", &TransformSpec::hue, real({.min = 0, .max = 0.5}), "largest turn of the colour circle, of 1 in all",
           {.only_for = {"color_jitter"}});
    s->add("ops", &TransformSpec::ops, integer({1, 16}), "operations that each sample goes through",
           {.only_for = {"rand_augment"}});
    s->add("magnitude", &TransformSpec::magnitude, integer({0, 30}), "their strength, of 31 steps",
           {.only_for = {"rand_augment"}});
    s->check = [](const TransformSpec& t, const Value& value, Reader& reader) {
      for (const auto& [key, numbers] : {std::pair("scale", &t.scale), std::pair("ratio", &t.ratio)}) {
        if (numbers->empty() || (numbers->size() == 2 && (*numbers)[0] <= (*numbers)[1])) continue;
        const Reader::Scope scope(reader, key);
        reader.problem(value.find(key)->place, "expected two numbers, the smaller one first");
      }
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
        if (std::find(doc.only_for.begin(), doc.only_for.end(), name) == doc.only_for.end()) return;
        KeyDoc own = doc;
        own.only_for.clear();
        sink(own);
      });
    }
  };
}

}  // namespace skytrain::recipe
