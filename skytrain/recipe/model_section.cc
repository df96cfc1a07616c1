#include "skytrain/recipe/sections.h"

namespace skytrain::recipe {

const Section<ModelSpec>& model_section() {
  static const Section<ModelSpec>* const section = [] {
    auto* s = new Section<ModelSpec>;
    s->selector = &ModelSpec::name;
    s->add(
        "name", &ModelSpec::name,
        choice("model", {"simplecnn", "mlp", "convnet", "resnet18", "resnet34", "resnet50", "torchscript", "plugin"}),
        "the architecture; torchscript: a module saved from Python; plugin: a model of your own in C++",
        {.required = true});
    s->add("classes", &ModelSpec::classes, integer({1, 1'000'000}),
           "outputs for each sample: classes, or values to predict");
    s->add("hidden", &ModelSpec::hidden, list_of("list of integers, 1 to 65,536", 1, 64, false, integer({1, 65536})),
           "width of each hidden layer", {.only_for = {"mlp"}});
    s->add("width", &ModelSpec::width, integer({4, 1024}), "channels of the first block", {.only_for = {"convnet"}});
    const std::vector<std::string> resnets = {"resnet18", "resnet34", "resnet50"};
    s->add("stem", &ModelSpec::stem, choice("stem", {"imagenet", "cifar"}),
           "imagenet: 7x7 convolution of stride 2 and max pooling; cifar: 3x3 convolution, for small pictures",
           {.only_for = resnets});
    s->add("path", &ModelSpec::path, path(), "file of the module, or shared library",
           {.required = true, .only_for = {"torchscript", "plugin"}});
    s->add("architecture", &ModelSpec::architecture,
           text("name, or empty", [](const std::string&) { return std::string(); }),
           "which model of the library; empty: its only one", {.only_for = {"plugin"}});
    s->add("init", &ModelSpec::init, optional_with("null", path()),
           "weights to start from: a state dict in .pt, .pth or .safetensors; null: random");
    s->add("init_except", &ModelSpec::init_except,
           list_of("list of patterns", 0, 256, true,
                   text("pattern",
                        [](const std::string& pattern) { return std::string(pattern.empty() ? "is empty" : ""); })),
           "names, as the shell matches them, that start at random nevertheless: [\"fc.*\"]");
    return s;
  }();
  return *section;
}

}  // namespace skytrain::recipe
