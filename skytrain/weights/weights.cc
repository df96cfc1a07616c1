#include "skytrain/weights/weights.h"

#include <algorithm>
#include <utility>

#include "skytrain/weights/file_bytes.h"
#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/pt_reader.h"
#include "skytrain/weights/read_bytes.h"
#include "skytrain/weights/refusal.h"
#include "skytrain/weights/sniff.h"

namespace skytrain::weights {
namespace {

constexpr std::string_view kDataParallel = "module.";

// What the spans of a Weights lie in.
struct Memory {
  std::shared_ptr<const std::byte> file;
  std::vector<std::unique_ptr<std::byte[]>> copies;
};

Weights from_safetensors(const FileBytes& file, const std::string& path) {
  checkpoint::SafetensorsHeader header =
      checkpoint::parse_safetensors_header(as_text(file.bytes), file.bytes.size(), path);
  Weights weights;
  weights.arrays.reserve(header.arrays.size());
  for (auto& [name, info] : header.arrays) {
    weights.arrays.push_back(
        {name, info.dtype, std::move(info.shape), file.bytes.subspan(info.begin, info.end - info.begin)});
  }
  weights.metadata = std::move(header.metadata);
  return weights;
}

void strip_data_parallel(Weights& weights) {
  const bool common =
      !weights.arrays.empty() &&
      std::all_of(weights.arrays.begin(), weights.arrays.end(), [](const checkpoint::NamedArray& array) {
        return array.name.starts_with(kDataParallel) && array.name.size() > kDataParallel.size();
      });
  if (!common) return;
  for (checkpoint::NamedArray& array : weights.arrays) array.name.erase(0, kDataParallel.size());
  weights.note += str(weights.note.empty() ? "" : "; ", "took \"", kDataParallel, "\" (DataParallel) off all names");
}

}  // namespace

std::string_view format_name(Format format) {
  switch (format) {
    case Format::kPtZip:
      return "PyTorch (zip)";
    case Format::kPtLegacy:
      return "PyTorch (before 1.6)";
    case Format::kSafetensors:
      break;
  }
  return "safetensors";
}

Weights read_bytes(FileBytes file, const std::string& path) {
  const Refusal refuse(path);
  PtContent content;
  switch (sniff(file.bytes)) {
    case FileKind::kSafetensors:
      content.weights = from_safetensors(file, path);
      break;
    case FileKind::kZip:
      content = read_pt_zip(file.bytes, refuse);
      break;
    case FileKind::kPickle:
      content = read_pt_legacy(file.bytes, refuse);
      break;
    case FileKind::kTar:
      refuse(describe_other(file.bytes), "load it in Python and save it again: torch.save(model.state_dict(), FILE)");
    case FileKind::kOther:
      refuse(str(describe_other(file.bytes), ": not a weights file (known: safetensors, .pt and .pth of torch.save)"),
             kFetchAgain);
  }
  strip_data_parallel(content.weights);
  auto memory = std::make_shared<Memory>();
  memory->file = std::move(file.owner);
  memory->copies = std::move(content.copies);
  content.weights.memory = std::move(memory);
  return std::move(content.weights);
}

Weights read_weights(const FileSystem& fs, const std::string& path) {
  return read_bytes(read_file_bytes(fs, path), path);
}

}  // namespace skytrain::weights
