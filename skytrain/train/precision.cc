#include "skytrain/train/precision.h"

#include <ATen/autocast_mode.h>

namespace skytrain::train {

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "fp32";
}

Precision precision_from_string(const std::string& text) {
  if (text == "bf16") return Precision::kBf16;
  return text == "fp16" ? Precision::kFp16 : Precision::kFp32;
}

Autocast::Autocast(Precision precision) : on_(precision != Precision::kFp32) {
  if (!on_) return;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, precision == Precision::kFp16 ? at::kHalf : at::kBFloat16);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace skytrain::train
