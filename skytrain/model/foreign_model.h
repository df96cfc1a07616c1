// skytrain/model/foreign_model.h
//
// What models of the user's own have in common, whether they come as TorchScript or as a plug-in: nothing they hand
// over is trusted to fit, and whatever goes wrong inside them is one line that names their file.

#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "skytrain/model/model.h"

namespace skytrain::model {

class ForeignModel : public Model {
 public:
  // Runs the user's code and checks its result. Throws Error(kRecipe) when it throws or returns anything but floating
  // logits [N, classes]; tensor::OutOfMemory passes through.
  at::Tensor forward(const at::Tensor& images) final;

 protected:
  // file: of the model. called: for people, "module", "model MyNet".
  ForeignModel(std::string file, std::string called, int64_t classes, at::ScalarType dtype);

  // Registers what the user's model owns: the same tensor, so that training changes it in place. A tensor that has come
  // under another name (tied weights) is passed over, as PyTorch's parameters() does. Throws Error(kRecipe) for a
  // parameter that can't be trained as it is.
  void adopt_parameter(const std::string& name, const at::Tensor& tensor);
  void adopt_buffer(const std::string& name, const at::Tensor& tensor);
  // To be called when all are adopted. Throws Error(kRecipe) when there was no parameter.
  void check_adopted() const;

  [[noreturn]] void refuse(std::string what, std::string hint = {}) const;

  const std::string file, called;

 private:
  virtual at::Tensor run(const at::Tensor& images) = 0;  // the user's forward
  void check_logits(const at::Tensor& logits, int64_t samples) const;

  int64_t classes_;
  at::ScalarType dtype_;
};

// The line that says what happened in a message of LibTorch: its first, or of a TorchScript traceback the last.
std::string one_line(std::string_view message);
// one_line of an exception's message, without LibTorch's C++ backtrace.
std::string one_line_of(const std::exception& failure);

}  // namespace skytrain::model
