// skytrain/model/torchscript.h
//
// TorchScript: modules that Python saved and that are trained here (zoo.h: load_torchscript), trained ones on their way
// back, and our own models for those who only have torch.jit.load.
//
// A module's forward takes images NCHW in float32 and returns logits [N, classes]. It is run by LibTorch's interpreter,
// the same that Python uses. Each replica loads a copy of its own and then shares the parameters.

#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "skytrain/base/file_system.h"
#include "skytrain/model/model.h"

namespace skytrain::model {

// Writes a model that load_torchscript made, with its present parameters and buffers and in evaluation mode, so that
// torch.jit.load opens it. The file is replaced atomically. Nobody may use the model meanwhile. Throws Error(kRecipe)
// for any other model (see trace).
void save_torchscript(FileSystem& fs, const Model& model, const std::string& path);

// Writes any other model as TorchScript: the operators of one forward pass in evaluation mode, with parameters and
// buffers under their names. images: NCHW, any values; other batch sizes work afterwards too, and other heights and
// widths where the model itself takes them. What forward decides from its input's values is fixed. Atomic, as above.
// The model's mode and values are as they were afterwards.
void trace(FileSystem& fs, Model& model, const at::Tensor& images, const std::string& path);

}  // namespace skytrain::model
