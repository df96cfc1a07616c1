// skytrain/train/precision.h
//
// Mixed precision on the CPU: autocast as torch.autocast("cpu", dtype=…) does it.

#pragma once
#include <string>

namespace skytrain::train {

enum class Precision { kFp32, kBf16, kFp16 };
std::string to_string(Precision precision);                // "fp32", "bf16", "fp16"
Precision precision_from_string(const std::string& text);  // REQUIRES: one of these

// While alive, the calling thread's matrix products and convolutions run in bfloat16 or float16; kFp32 does nothing.
class Autocast {
 public:
  explicit Autocast(Precision precision);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
};

}  // namespace skytrain::train
