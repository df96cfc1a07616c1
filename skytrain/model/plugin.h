// skytrain/model/plugin.h
//
// Models of your own, in C++: the one header that a plug-in includes. A plug-in is a shared library with one or more
// classes derived from torch::nn::Module; a recipe names it as
//
//     model: {name: plugin, path: libmine.so, architecture: MyNet, classes: 10}
//
//     class MyNet : public torch::nn::Module {
//      public:
//       explicit MyNet(const skytrain::ModelShape& shape);
//       torch::Tensor forward(const torch::Tensor& images);  // [N, channels, height, width] -> logits [N, classes]
//     };
//     SKYTRAIN_MODEL(MyNet)
//
// It is built against the LibTorch that SkyTrain was built with, by a compiler with the same C++ library
// (examples/plugin). Include the headers of LibTorch that your model needs first: this one brings tensors only.
//
// Each device has an instance of its own, all of which share the memory of their parameters, and is called by one
// thread at a time; keep no state outside of parameters and buffers. What a constructor draws from LibTorch's random
// numbers is decided by the recipe's seed. Exceptions are reported with the plug-in's name, and so are crashes.

#pragma once
#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace skytrain {

// What a model is built for.
struct ModelShape {
  int64_t classes = 0;                          // of the recipe: the number of outputs
  int64_t channels = 0, height = 0, width = 0;  // of the data: of one image
};

namespace plugin {

// Changes when anything below does.
#define SKYTRAIN_PLUGIN_ABI "1"
#ifdef _LIBCPP_VERSION
#define SKYTRAIN_PLUGIN_CXX "libc++"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define SKYTRAIN_PLUGIN_CXX "libstdc++, C++11 ABI"
#else
#define SKYTRAIN_PLUGIN_CXX "libstdc++, old ABI"
#endif
// Searched for in the file, so that a library that does not fit is never run.
#define SKYTRAIN_PLUGIN_MARK "SkyTrain plug-in\n"
#define SKYTRAIN_PLUGIN_TAG \
  SKYTRAIN_PLUGIN_MARK      \
  "abi=" SKYTRAIN_PLUGIN_ABI "\nlibtorch=" TORCH_VERSION "\nc++=" SKYTRAIN_PLUGIN_CXX "\n"

using Visit = void (*)(void* context, const char* name, const at::Tensor& tensor, bool is_parameter);

// One model of a plug-in. `instance` is what create returned.
struct ModelEntry {
  const char* name;
  void* (*create)(const ModelShape& shape);
  void (*destroy)(void* instance);
  void (*train)(void* instance, bool on);
  void (*convert)(void* instance, at::ScalarType dtype);
  at::Tensor (*forward)(void* instance, const at::Tensor& images);
  void (*visit)(void* instance, Visit visit, void* context);  // parameters in order, then buffers
};

struct Table {
  const char* tag;
  const ModelEntry* models;
  size_t count;
};

// Hidden, and so are their statics: two plug-ins in one process must not share them.
__attribute__((visibility("hidden"))) inline std::vector<ModelEntry>& registry() {
  static std::vector<ModelEntry> models;
  return models;
}

__attribute__((visibility("hidden"))) inline const Table* table() {
  static Table all;
  all = {SKYTRAIN_PLUGIN_TAG, registry().data(), registry().size()};
  return &all;
}

template <class M>
ModelEntry entry(const char* name) {
  static_assert(std::is_base_of_v<torch::nn::Module, M>, "SKYTRAIN_MODEL: derive the class from torch::nn::Module");
  static_assert(std::is_constructible_v<M, const ModelShape&>,
                "SKYTRAIN_MODEL: give the class a constructor from const skytrain::ModelShape&");
  static_assert(std::is_same_v<decltype(std::declval<M&>().forward(std::declval<at::Tensor>())), at::Tensor>,
                "SKYTRAIN_MODEL: give the class torch::Tensor forward(const torch::Tensor&)");
  // Modules know themselves by shared_ptr.
  using Holder = std::shared_ptr<M>;
  ModelEntry made{};
  made.name = name;
  made.create = [](const ModelShape& shape) -> void* { return new Holder(std::make_shared<M>(shape)); };
  made.destroy = [](void* instance) { delete static_cast<Holder*>(instance); };
  made.train = [](void* instance, bool on) { (*static_cast<Holder*>(instance))->train(on); };
  made.convert = [](void* instance, at::ScalarType dtype) { (*static_cast<Holder*>(instance))->to(dtype); };
  made.forward = [](void* instance, const at::Tensor& images) {
    return (*static_cast<Holder*>(instance))->forward(images);
  };
  made.visit = [](void* instance, Visit visit, void* context) {
    for (const auto& item : (*static_cast<Holder*>(instance))->named_parameters())
      visit(context, item.key().c_str(), item.value(), true);
    for (const auto& item : (*static_cast<Holder*>(instance))->named_buffers())
      visit(context, item.key().c_str(), item.value(), false);
  };
  return made;
}

__attribute__((visibility("hidden"))) inline bool add(const ModelEntry& model) {
  registry().push_back(model);
  return true;
}

}  // namespace plugin
}  // namespace skytrain

// What a plug-in exports.
extern "C" __attribute__((visibility("default"), used)) inline const skytrain::plugin::Table* skytrain_plugin_table() {
  return skytrain::plugin::table();
}

#define SKYTRAIN_JOIN_(a, b) a##b
#define SKYTRAIN_JOIN(a, b) SKYTRAIN_JOIN_(a, b)

// At namespace scope, once for each class.
#define SKYTRAIN_MODEL(ClassName)                                               \
  [[maybe_unused]] static const bool SKYTRAIN_JOIN(skytrain_model_, __LINE__) = \
      ::skytrain::plugin::add(::skytrain::plugin::entry<ClassName>(#ClassName));
