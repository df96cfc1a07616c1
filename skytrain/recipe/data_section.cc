#include "skytrain/recipe/sections.h"
#include "skytrain/recipe/transforms.h"

namespace skytrain::recipe {
namespace {

bool holds_pictures(const DatasetSpec& spec) { return spec.format != "jsonl" || spec.image; }

// A key that a JSONL file of numbers does not have.
void of_pictures(Field<DatasetSpec>& field) {
  field.present = holds_pictures;
  field.read_absent = [](const Place&, Reader& reader, DatasetSpec* spec) {
    if (holds_pictures(*spec)) reader.record_origin(Place{});
  };
}

void check_jsonl(const DatasetSpec& spec, const Value& value, Reader& reader) {
  if (spec.format != "jsonl") return;
  if (spec.image && spec.size == 0) {
    const Reader::Scope scope(reader, "size");
    reader.problem(value.place, "is missing", "height and width that pictures are cropped to, in pixels");
  }
  for (const char* name : {"size", "resize", "exif_orientation"}) {
    const Value* const given = value.find(name);
    if (spec.image || given == nullptr) continue;
    const Reader::Scope scope(reader, name);
    reader.problem(given->place, "is for pictures, and without image the lines hold numbers",
                   "name the key of the pictures' files: image: file_name");
  }
}

const Section<DatasetSpec>& dataset_section() {
  static const Section<DatasetSpec>* const section = [] {
    auto* s = new Section<DatasetSpec>;
    s->selector = &DatasetSpec::format;
    s->add("format", &DatasetSpec::format,
           choice("format", {"idx", "cifar10", "imagefolder", "webdataset", "mds", "csv", "jsonl", "synthetic"}),
           "idx: the files of MNIST and its relatives; cifar10: its binary files; imagefolder: a folder of pictures "
           "for each class; webdataset: tar archives of pictures and classes; mds: a folder of MosaicML Streaming's "
           "shards; csv: rows of numbers; jsonl: lines of JSON that name pictures or hold numbers; synthetic: made up "
           "from the seed, for trying things out",
           {.required = true});
    s->add("path", &DatasetSpec::path, path(), "folder, or file, of the data, against the recipe's own folder",
           {.required = true,
            .only_for = {"idx", "cifar10", "imagefolder", "webdataset", "mds", "csv", "jsonl"},
            .continuity = Continuity::kMayChange});
    s->add("split", &DatasetSpec::split, choice("split", {"train", "test"}), "which files of the folder",
           {.required = true, .only_for = {"idx", "cifar10"}});
    const std::vector<std::string> pictures = {"imagefolder", "webdataset", "mds", "jsonl"};
    const auto key = text("key", [](const std::string& name) { return std::string(name.empty() ? "is empty" : ""); });
    s->add("image", &DatasetSpec::image, optional_with("null", key),
           "the key of the picture's file, relative to the folder of the JSONL; null: rows of numbers",
           {.only_for = {"jsonl"}});
    auto& size = s->add("size", &DatasetSpec::size, integer({1, 4096}),
                        "height and width that pictures are cropped to, in pixels; jsonl: where it has an image",
                        {.required = true, .only_for = pictures, .optional_for = {"jsonl"}});
    size.present = [](const DatasetSpec& d) { return d.size > 0; };
    size.read_absent = [](const Place&, Reader&, DatasetSpec*) {};
    auto& resize = s->add("resize", &DatasetSpec::resize, optional_with("null", integer({1, 4096})),
                          "length that the shorter side is scaled to before the crop from the centre; null: size",
                          {.only_for = pictures});
    of_pictures(resize);
    auto& exif =
        s->add("exif_orientation", &DatasetSpec::exif_orientation, boolean(),
               "true: pictures are turned upright, as their Exif says; false: they are taken as they are stored, "
               "as torchvision's ImageFolder takes them",
               {.only_for = pictures});
    of_pictures(exif);
    s->add("target", &DatasetSpec::target,
           list_of("name of a column, or a list of them", 1, 4096, true,
                   text("name of a column",
                        [](const std::string& name) { return std::string(name.empty() ? "is empty" : ""); })),
           "the column (jsonl: key) of the class, or of the values to predict; all others are features, where there is "
           "no image",
           {.required = true, .only_for = {"csv", "jsonl"}});
    s->add("samples", &DatasetSpec::samples, described_as("integer, 1 or more", unsigned_integer({1, kMaxCount})),
           "how many samples", {.only_for = {"synthetic"}});
    s->add("channels", &DatasetSpec::channels, integer({1, 4096}), "channels of a sample", {.only_for = {"synthetic"}});
    s->add("height", &DatasetSpec::height, integer({1, 4096}), "pixels", {.only_for = {"synthetic"}});
    s->add("width", &DatasetSpec::width, integer({1, 4096}), "pixels", {.only_for = {"synthetic"}});
    s->check = check_jsonl;
    return s;
  }();
  return *section;
}

const Section<ProgressiveResizingSpec>& progressive_resizing_section() {
  static const Section<ProgressiveResizingSpec>* const section = [] {
    using Spec = ProgressiveResizingSpec;
    auto* s = new Section<Spec>;
    s->add("initial_scale", &Spec::initial_scale, real({.min = 0, .max = 1, .above_min = true}),
           "of height and width, at the beginning");
    s->add("delay_fraction", &Spec::delay_fraction, real({.min = 0, .max = 1}), "part of the run at that scale");
    s->add("finetune_fraction", &Spec::finetune_fraction, real({.min = 0, .max = 1}),
           "part of the run at its end with full size; in between, the scale grows evenly");
    s->add("size_increment", &Spec::size_increment, integer({1, 4096}), "heights and widths are multiples of it");
    s->check = [](const Spec& spec, const Value& value, Reader& reader) {
      if (spec.delay_fraction + spec.finetune_fraction <= 1) return;
      const Value* const place = value.find("finetune_fraction");
      reader.problem(place != nullptr ? place->place : value.place,
                     "finetune_fraction and delay_fraction are more than the whole run together");
    };
    return s;
  }();
  return *section;
}

// "HEIGHTxWIDTH"; "" when it is one, else what is wrong.
std::string refuse_bucket(const std::string& text) {
  const std::string expected = "expected HEIGHTxWIDTH in pixels, like 192x256";
  const size_t x = text.find('x');
  if (x == std::string::npos) return expected;
  for (const std::string& number : {text.substr(0, x), text.substr(x + 1)}) {
    if (number.empty() || number.size() > 4 || number[0] == '0' ||
        number.find_first_not_of("0123456789") != std::string::npos || std::stol(number) > 4096)
      return expected;
  }
  return "";
}

}  // namespace

const Section<DataSpec>& data_section() {
  static const Section<DataSpec>* const section = [] {
    auto* s = new Section<DataSpec>;
    s->add_section("train", &DataSpec::train, dataset_section(), "the samples to train on", {.required = true});
    s->add_optional_section("eval", &DataSpec::eval, dataset_section(),
                            "the samples to evaluate on; null: no evaluation");
    add_transforms(*s);
    s->add(
        "buckets", &DataSpec::buckets,
        list_of("list of HEIGHTxWIDTH", 0, 64, false, text("HEIGHTxWIDTH", refuse_bucket)),
        "shapes of batches: each picture goes to the one that is most like its own, and is scaled and cropped to it; "
        "[]: all are size x size");
    s->add_optional_section("progressive_resizing", &DataSpec::progressive_resizing, progressive_resizing_section(),
                            "training begins with smaller pictures; null: it does not");
    s->add(
        "skip_bad_samples", &DataSpec::skip_bad_samples, integer({0, kMaxCount}),
        "so many samples of a set that turn out to be damaged are left out, each is named, and one more ends the run",
        {.continuity = Continuity::kMayChange});
    s->add(
        "workers", &DataSpec::workers, optional_with("auto", integer({0, 1024})),
        "threads that make batches ahead of the steps; 0: the devices do it themselves; auto: as many as needed where "
        "samples are decoded, else 0",
        {.continuity = Continuity::kMayChange});
    return s;
  }();
  return *section;
}

}  // namespace skytrain::recipe
