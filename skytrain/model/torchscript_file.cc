#include "skytrain/model/torchscript_file.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"

namespace skytrain::model {
namespace {

constexpr char kSaveModule[] = "save the module in Python: torch.jit.script(model).save(\"model.pt\")";
constexpr char kAgain[] = "download or copy the file again";

[[noreturn]] void refuse(const std::string& path, std::string what, std::string hint) {
  throw Error(ErrorKind::kData, path, std::move(what), std::move(hint));
}

// The first class or function that a pickle names ("torchvision.models.resnet.ResNet"): opcode 'c', then two lines.
// That of a pickled object is its class; torch.save's own come first in everything else.
std::string first_global(std::string_view pickle) {
  const auto is_word = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  };
  for (size_t at = pickle.find('c'); at != std::string_view::npos; at = pickle.find('c', at + 1)) {
    const size_t module_end = pickle.find('\n', at);
    if (module_end == std::string_view::npos) break;
    const size_t name_end = pickle.find('\n', module_end + 1);
    if (name_end == std::string_view::npos) break;
    const std::string_view module = pickle.substr(at + 1, module_end - at - 1);
    const std::string_view name = pickle.substr(module_end + 1, name_end - module_end - 1);
    if (is_word(module) && is_word(name)) return str(module, ".", name);
  }
  return "";
}

[[noreturn]] void refuse_pickle(const std::string& path, std::string_view pickle) {
  const std::string global = first_global(pickle);
  const bool module = !global.empty() && global != "collections.OrderedDict" && !global.starts_with("torch._utils.") &&
                      !global.starts_with("torch.storage.") && !global.ends_with("Storage");
  if (module)
    refuse(path, str("is a pickled ", printable(global), ", which only Python can open, not TorchScript"), kSaveModule);
  refuse(path, "holds weights (of torch.save) without a module, not TorchScript",
         str("name their architecture in model.name and this file in model.init, or ", kSaveModule));
}

void require_archive(const std::string& path) {
  std::vector<std::string> records;
  std::string pickle;
  try {
    caffe2::serialize::PyTorchStreamReader archive(path);
    records = archive.getAllRecords();
    if (archive.hasRecord("data.pkl")) {
      const auto [bytes, size] = archive.getRecord("data.pkl");
      pickle.assign(static_cast<const char*>(bytes.get()), size);
    }
  } catch (const std::exception&) {
    refuse(path, "is a damaged archive: cut short, or not from PyTorch", kAgain);
  }
  const auto has = [&](std::string_view start) {
    return std::any_of(records.begin(), records.end(), [&](const std::string& r) { return r.starts_with(start); });
  };
  if (has("constants.pkl") && has("code/")) return;
  if (has("archive_format") || has("serialized_exported_program") || has("models/"))
    refuse(path, "is a program of torch.export, which can't be trained here", kSaveModule);
  if (!pickle.empty()) refuse_pickle(path, pickle);
  refuse(path, "is a zip archive, but not TorchScript", kSaveModule);
}

}  // namespace

void require_torchscript(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) refuse(path, "no such file", "model.path is the file of a module that Python saved");
  if (info->type == FileInfo::Type::kDirectory) refuse(path, "is a directory, expected a file", "");
  if (info->type != FileInfo::Type::kFile) refuse(path, "is not a regular file", "");
  if (info->size == 0) refuse(path, "is empty (0 bytes)", kAgain);

  std::string head(std::min<uint64_t>(info->size, 64 << 10), '\0');
  fs.read_range(path, 0, std::as_writable_bytes(std::span(head)));
  if (head.starts_with("PK\x03\x04")) return require_archive(path);
  if (head.starts_with("\x80")) refuse_pickle(path, head);
  if (head.size() > 9 && head[8] == '{')
    refuse(path, "is a safetensors file (weights without a module), not TorchScript",
           str("name their architecture in model.name and this file in model.init, or ", kSaveModule));
  const std::string looks =
      describe_content({reinterpret_cast<const uint8_t*>(head.data()), std::min<size_t>(head.size(), 512)});
  const bool fetched_wrong = looks.find("HTML") != std::string::npos || looks.find("LFS") != std::string::npos;
  const char* const hint = head.starts_with(
                               "\x7f"
                               "ELF")
                               ? "a shared library with a model is model.name: plugin"
                           : fetched_wrong ? kAgain
                                           : kSaveModule;
  refuse(path, str("is not TorchScript: it ", looks), hint);
}

}  // namespace skytrain::model
