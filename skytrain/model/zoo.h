// skytrain/model/zoo.h
//
// The built-in models, one file each, and the loaders of the user's own. A new model: its file, a line here, a line in
// model.cc's table, its name in the recipe's list of models.

#pragma once
#include "skytrain/model/model.h"

namespace skytrain::model {

// conv 3x3 (32) -> relu -> linear. The "basic MNIST example" network.
std::unique_ptr<Model> build_simplecnn(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
// linear -> relu, once for each hidden width, -> linear.
std::unique_ptr<Model> build_mlp(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
// A small strong network for small pictures: 2 x [2 x (conv 3x3, batch norm, relu), max pool], linear.
std::unique_ptr<Model> build_convnet(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
// resnet18, resnet34, resnet50 of torchvision (spec.name says which; 50 is v1.5: the 3x3 convolution has the stride).
std::unique_ptr<Model> build_resnet(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);

// A module that Python saved (torchscript.h), from the file spec.path. Its weights are the file's.
std::unique_ptr<Model> load_torchscript(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
// A model of a user's shared library (plugin.h), from the file spec.path. Its initial weights are drawn by its own
// constructor from LibTorch's default generator, which has the state of the given one meanwhile.
std::unique_ptr<Model> load_plugin(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);

}  // namespace skytrain::model
