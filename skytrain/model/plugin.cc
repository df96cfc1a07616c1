#include "skytrain/model/plugin.h"

#include <ATen/CPUGeneratorImpl.h>
#include <dlfcn.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"
#include "skytrain/model/foreign_model.h"
#include "skytrain/model/plugin_crash.h"
#include "skytrain/model/zoo.h"

namespace skytrain::model {
namespace {

constexpr char kBuild[] = "build it as examples/plugin does";

[[noreturn]] void refuse(const std::string& path, std::string what, std::string hint) {
  throw Error(ErrorKind::kEnvironment, path, std::move(what), std::move(hint));
}

// The value of `key` in a tag (plugin.h), or "".
std::string_view tag_value(std::string_view tag, std::string_view key) {
  const size_t at = tag.find(str("\n", key, "="));
  if (at == std::string_view::npos) return {};
  const size_t begin = at + key.size() + 2;
  return tag.substr(begin, tag.find('\n', begin) - begin);
}

// Reads the library's file: one that does not fit must not be loaded, since loading runs its code.
void check_library(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) refuse(path, "no such file", "model.path is the shared library of the plug-in");
  if (info->type != FileInfo::Type::kFile) refuse(path, "is not a file, expected a shared library", "");
  const std::string content = fs.read_file(path);
  if (!content.starts_with("\x7f"
                           "ELF")) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(content.data());
    refuse(path, str("is not a shared library: it ", describe_content({bytes, std::min<size_t>(content.size(), 512)})),
           kBuild);
  }
  constexpr std::string_view kOurs = SKYTRAIN_PLUGIN_TAG;
  const size_t at = content.find(SKYTRAIN_PLUGIN_MARK);
  if (at == std::string::npos)
    refuse(path, "has no model in it", "name one by SKYTRAIN_MODEL(ClassName) (skytrain/model/plugin.h)");
  const std::string_view theirs = std::string_view(content).substr(at, content.find('\0', at) - at);
  const auto compare = [&](std::string_view key, std::string_view called) {
    const std::string_view its = tag_value(theirs, key), wanted = tag_value(kOurs, key);
    if (its == wanted) return;
    refuse(path, str("was built for ", called, " ", printable(its), ", this is ", called, " ", wanted),
           str("rebuild it; ", kBuild));
  };
  compare("abi", "plug-in interface");
  compare("libtorch", "LibTorch");
  compare("c++", "the C++ library");
}

struct Library {
  std::string file_name;
  const plugin::Table* table;
  const void* symbol;
};

Library open_library(const std::string& path) {
  check_library(FileSystem::real(), path);
  // Never closed: tensors and autograd nodes may outlive the model.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::string why = dlerror();
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
    refuse(path, str("can't be loaded: ", printable(why, 400)),
           str("link it to torch_cpu and c10 of the same LibTorch; ", kBuild));
  }
  void* const symbol = dlsym(handle, "skytrain_plugin_table");
  if (symbol == nullptr)
    refuse(path, "does not export skytrain_plugin_table", "don't hide it by a version script or strip it");
  const auto* const table = reinterpret_cast<const plugin::Table* (*)()>(symbol)();
  return {std::filesystem::path(path).filename().string(), table, symbol};
}

const plugin::ModelEntry& find_model(const Library& library, const recipe::ModelSpec& spec) {
  std::vector<std::string> names;
  for (size_t i = 0; i < library.table->count; ++i) {
    names.emplace_back(library.table->models[i].name);
    if (names.back() == spec.architecture) return library.table->models[i];
  }
  if (spec.architecture.empty() && names.size() == 1) return library.table->models[0];
  const std::string known = "it has: " + join(names, ", ");
  if (spec.architecture.empty())
    throw Error(ErrorKind::kRecipe, "model.architecture", str(library.file_name, " has ", names.size(), " models"),
                known);
  throw Error(ErrorKind::kRecipe, "model.architecture",
              str(library.file_name, " has no model \"", printable(spec.architecture), "\"",
                  did_you_mean(spec.architecture, names)),
              known);
}

// Lends the default generator, which torch::nn draws from, the state of `generator`, and takes it back.
class SeededScope {
 public:
  explicit SeededScope(at::Generator& generator)
      : generator_(generator), default_(at::detail::getDefaultCPUGenerator()) {
    outer_ = default_.get_state();
    if (generator_.defined()) default_.set_state(generator_.get_state());
  }
  ~SeededScope() {
    if (generator_.defined()) generator_.set_state(default_.get_state());
    default_.set_state(outer_);
  }
  SeededScope(const SeededScope&) = delete;
  SeededScope& operator=(const SeededScope&) = delete;

 private:
  at::Generator& generator_;
  at::Generator default_;
  at::Tensor outer_;
};

class PluginModel final : public ForeignModel {
 public:
  PluginModel(const Library& library, const plugin::ModelEntry& entry, const recipe::ModelSpec& spec,
              const InputShape& input, at::Generator generator, at::ScalarType dtype)
      : ForeignModel(spec.path, str("model ", entry.name), spec.classes, dtype),
        entry_(entry),
        identity_(watch_plugin(library.file_name, entry.name, library.symbol)) {
    call("the constructor", [&] {
      const SeededScope seeded(generator);
      instance_ = entry_.create({spec.classes, input.channels, input.height, input.width});
    });
    try {
      call("convert", [&] {
        if (dtype != at::kFloat) entry_.convert(instance_, dtype);
      });
      call("train", [&] { entry_.train(instance_, true); });
      adopt_all();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~PluginModel() override { destroy(); }

 private:
  at::Tensor run(const at::Tensor& images) override {
    const InPlugin inside(identity_);
    return entry_.forward(instance_, images);
  }

  void training_changed() override {
    call("train", [this] { entry_.train(instance_, training()); });
  }

  void adopt_all() {
    const InPlugin inside(identity_);
    entry_.visit(
        instance_,
        [](void* self, const char* name, const at::Tensor& tensor, bool is_parameter) {
          auto& model = *static_cast<PluginModel*>(self);
          is_parameter ? model.adopt_parameter(name, tensor) : model.adopt_buffer(name, tensor);
        },
        this);
    check_adopted();
  }

  template <class F>
  void call(const char* what, const F& work) {
    const InPlugin inside(identity_);
    try {
      work();
    } catch (const std::exception& failure) {
      refuse_call(what, one_line_of(failure));
    } catch (...) {
      refuse_call(what, "something that is no std::exception");
    }
  }
  [[noreturn]] void refuse_call(const char* what, const std::string& why) const {
    refuse(str(what, " of ", called, " threw: ", why));
  }

  void destroy() {
    const InPlugin inside(identity_);
    entry_.destroy(instance_);
  }

  const plugin::ModelEntry& entry_;
  const PluginIdentity* identity_;
  void* instance_ = nullptr;
};

}  // namespace

std::unique_ptr<Model> load_plugin(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                   at::ScalarType dtype) {
  const Library library = open_library(spec.path);
  return std::make_unique<PluginModel>(library, find_model(library, spec), spec, input, std::move(generator), dtype);
}

}  // namespace skytrain::model
