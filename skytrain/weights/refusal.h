// skytrain/weights/refusal.h
//
// How the readers of this folder give up on a file.

#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::weights {

inline constexpr char kFetchAgain[] = "download or copy the file again";

class Refusal {
 public:
  explicit Refusal(const std::string& file) : file_(file) {}
  [[noreturn]] void operator()(std::string what, std::string hint = {}) const {
    throw Error(ErrorKind::kData, file_, std::move(what), std::move(hint));
  }
  [[noreturn]] void tensor(std::string_view name, const std::string& what) const {
    (*this)(str("tensor \"", printable(name), "\" ", what));
  }

 private:
  const std::string& file_;
};

}  // namespace skytrain::weights
