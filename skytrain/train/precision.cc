#include "skytrain/train/precision.h"

#include <ATen/autocast_mode.h>

namespace skytrain::train {

std::string to_string(Precision precision) { return precision == Precision::kBf16 ? "bf16" : "fp32"; }

Autocast::Autocast(Precision precision) : on_(precision == Precision::kBf16) {
  if (!on_) return;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace skytrain::train
