#include "skytrain/data/idx.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/data/idx_file.h"

namespace skytrain::data {
namespace {

struct Pair {
  std::string images, labels;  // file names
};

Pair find_pair(const FileSystem& fs, const recipe::DatasetSpec& spec) {
  if (spec.split != "train" && spec.split != "test") {
    throw Error(ErrorKind::kRecipe, "",
                str("format idx has no split \"", spec.split, "\"", did_you_mean(spec.split, {"train", "test"})),
                "known: train, test");
  }
  const std::optional<FileInfo> folder = fs.stat(spec.path);
  const std::string expected = "expected a folder with the IDX files of the data set";
  if (!folder) throw Error(ErrorKind::kData, spec.path, "no such folder", expected);
  if (folder->type != FileInfo::Type::kDirectory) {
    throw Error(ErrorKind::kData, spec.path, "is a file, " + expected, "give the folder that the file lies in");
  }
  const std::string prefix = spec.split == "train" ? "train" : "t10k";
  std::vector<std::string> missing;
  const auto find = [&](const std::string& name) -> std::string {
    for (const std::string& candidate : {name, name + ".gz"}) {
      if (fs.exists(spec.path + "/" + candidate)) return candidate;
    }
    missing.push_back(name + "[.gz]");
    return "";
  };
  Pair pair;
  pair.images = find(prefix + "-images-idx3-ubyte");
  pair.labels = find(prefix + "-labels-idx1-ubyte");
  if (!missing.empty()) {
    throw Error(ErrorKind::kData, spec.path, "has no " + join(missing, " and no "), folder_content(fs, spec.path));
  }
  return pair;
}

std::vector<int32_t> checked_labels(std::span<const uint8_t> raw, int64_t classes, const std::string& path) {
  std::vector<int32_t> labels(raw.begin(), raw.end());
  const auto bad = std::find_if(raw.begin(), raw.end(), [&](uint8_t label) { return label >= classes; });
  if (classes > 0 && bad != raw.end()) {
    const int highest = *std::max_element(raw.begin(), raw.end());
    throw Error(ErrorKind::kData, str(path, "[", bad - raw.begin(), "]"),
                str("label ", int{*bad}, " is outside [0, ", classes, ")"),
                str("the model has ", classes, " classes; the highest label of the file is ", highest));
  }
  return labels;
}

}  // namespace

std::unique_ptr<IdxDataset> IdxDataset::open(const FileSystem& fs, const recipe::DatasetSpec& spec, int64_t classes) {
  const Pair names = find_pair(fs, spec);
  const std::string images_path = spec.path + "/" + names.images, labels_path = spec.path + "/" + names.labels;
  // Labels first: they are small, and a mistake in them is found before the images are unpacked.
  const IdxFile labels = read_idx(fs, labels_path, kIdxLabelDimensions);
  std::vector<int32_t> checked = checked_labels(labels.data(), classes, labels_path);
  IdxFile images = read_idx(fs, images_path, kIdxImageDimensions);
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw Error(
        ErrorKind::kData, images_path,
        str("holds ", images.dimensions[0], " images, but ", names.labels, " holds ", labels.dimensions[0], " labels"),
        "the two files do not belong together");
  }
  DatasetInfo info;
  info.format = "idx";
  info.samples = images.dimensions[0];
  info.channels = 1;
  info.height = static_cast<int64_t>(images.dimensions[1]);
  info.width = static_cast<int64_t>(images.dimensions[2]);
  PixelBlock pixels{.block = std::move(images.block), .offset = images.offset, .size = images.size};
  return std::unique_ptr<IdxDataset>(
      new IdxDataset(std::move(info), std::move(pixels), std::move(checked), {{names.images, images.dimensions[0]}}));
}

}  // namespace skytrain::data
