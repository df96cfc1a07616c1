// skytrain/model/zoo.h
//
// The built-in models, one file each. A new one: its file, a line here, a line in model.cc's table, its name in the
// recipe's list of models.

#pragma once
#include "skytrain/model/model.h"

namespace skytrain::model {

// conv 3x3 (32) -> relu -> linear. The "basic MNIST example" network.
std::unique_ptr<Model> build_simplecnn(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
// linear -> relu, once for each hidden width, -> linear.
std::unique_ptr<Model> build_mlp(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
// A small strong network for small pictures: 2 x [2 x (conv 3x3, batch norm, relu), max pool], linear.
std::unique_ptr<Model> build_convnet(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);

}  // namespace skytrain::model
