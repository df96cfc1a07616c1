#include "skytrain/recipe/sections.h"
#include "skytrain/recipe/transforms.h"

namespace skytrain::recipe {
namespace {

const Section<DatasetSpec>& dataset_section() {
  static const Section<DatasetSpec>* const section = [] {
    auto* s = new Section<DatasetSpec>;
    s->selector = &DatasetSpec::format;
    s->add("format", &DatasetSpec::format,
           choice("format", {"idx", "cifar10", "imagefolder", "webdataset", "mds", "csv", "synthetic"}),
           "idx: the files of MNIST and its relatives; cifar10: its binary files; imagefolder: a folder of pictures "
           "for each class; webdataset: tar archives of pictures and classes; mds: a folder of MosaicML Streaming's "
           "shards; csv: rows of numbers; synthetic: made up from the seed, for trying things out",
           {.required = true});
    s->add("path", &DatasetSpec::path, path(), "folder, or file, of the data, against the recipe's own folder",
           {.required = true,
            .only_for = {"idx", "cifar10", "imagefolder", "webdataset", "mds", "csv"},
            .continuity = Continuity::kMayChange});
    s->add("split", &DatasetSpec::split, choice("split", {"train", "test"}), "which files of the folder",
           {.required = true, .only_for = {"idx", "cifar10"}});
    s->add("size", &DatasetSpec::size, integer({1, 4096}), "height and width that pictures are cropped to, in pixels",
           {.required = true, .only_for = {"imagefolder", "webdataset", "mds"}});
    s->add("resize", &DatasetSpec::resize, optional_with("null", integer({1, 4096})),
           "length that the shorter side is scaled to before the crop from the centre; null: size",
           {.only_for = {"imagefolder", "webdataset", "mds"}});
    s->add("target", &DatasetSpec::target,
           list_of("name of a column, or a list of them", 1, 4096, true,
                   text("name of a column",
                        [](const std::string& name) { return std::string(name.empty() ? "is empty" : ""); })),
           "the column of the class, or of the values to predict; all others are features",
           {.required = true, .only_for = {"csv"}});
    s->add("samples", &DatasetSpec::samples, described_as("integer, 1 or more", unsigned_integer({1, kMaxCount})),
           "how many samples", {.only_for = {"synthetic"}});
    s->add("channels", &DatasetSpec::channels, integer({1, 4096}), "channels of a sample", {.only_for = {"synthetic"}});
    s->add("height", &DatasetSpec::height, integer({1, 4096}), "pixels", {.only_for = {"synthetic"}});
    s->add("width", &DatasetSpec::width, integer({1, 4096}), "pixels", {.only_for = {"synthetic"}});
    return s;
  }();
  return *section;
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
        "workers", &DataSpec::workers, optional_with("auto", integer({0, 1024})),
        "threads that make batches ahead of the steps; 0: the devices do it themselves; auto: as many as needed where "
        "samples are decoded, else 0",
        {.continuity = Continuity::kMayChange});
    return s;
  }();
  return *section;
}

}  // namespace skytrain::recipe
