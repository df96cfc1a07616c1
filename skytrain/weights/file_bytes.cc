#include "skytrain/weights/file_bytes.h"

#include <new>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/weights/refusal.h"

namespace skytrain::weights {
namespace {

constexpr std::align_val_t kAlignment{64};  // writers of these formats align tensors to it within the file

}  // namespace

FileBytes read_file_bytes(const FileSystem& fs, const std::string& path) {
  const Refusal refuse(path);
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) refuse("no such file", "check the path");
  if (info->type == FileInfo::Type::kDirectory)
    refuse("is a folder, not a weights file", "of a run, `skytrain export RUN -o weights.safetensors` writes one");
  if (info->type != FileInfo::Type::kFile) refuse("is not a file");
  const size_t size = static_cast<size_t>(info->size);
  auto* const memory = static_cast<std::byte*>(::operator new(size, kAlignment, std::nothrow));
  if (memory == nullptr) {
    throw Error(ErrorKind::kEnvironment, path, str("does not fit into the memory: it is ", human_bytes(info->size)));
  }
  FileBytes file;
  file.owner =
      std::shared_ptr<const std::byte>(memory, [](std::byte* at) noexcept { ::operator delete(at, kAlignment); });
  fs.read_range(path, 0, std::span(memory, size));
  file.bytes = std::span<const std::byte>(memory, size);
  return file;
}

}  // namespace skytrain::weights
