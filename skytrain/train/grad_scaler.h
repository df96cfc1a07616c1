// skytrain/train/grad_scaler.h
//
// The loss scale of fp16 training, as torch.amp.GradScaler keeps it (init_scale 2^16, growth_factor 2, backoff_factor
// 0.5, growth_interval 2000; the arithmetic of at::_amp_update_scale_, in float32).

#pragma once
#include <cstdint>

#include "skytrain/base/json.h"

namespace skytrain::train {

class GradScaler {
 public:
  struct Options {
    float init_scale = 65536;
    double growth_factor = 2, backoff_factor = 0.5;
    int64_t growth_interval = 2000;
  };
  GradScaler() : GradScaler(Options()) {}
  explicit GradScaler(const Options& options) : options_(options), scale_(options.init_scale) {}

  // What the loss is multiplied by before the backward pass.
  float scale() const { return scale_; }
  // What gradients are multiplied by before they are used: computed in double.
  double inverse_scale() const { return 1.0 / double(scale_); }
  int64_t growth_tracker() const { return growth_tracker_; }

  // After each step. found_inf: a scaled gradient was infinite or NaN, and the step was skipped.
  void update(bool found_inf);

  // The scale has fallen so far that it is the model that overflows, not the scaled gradients.
  bool hopeless() const { return scale_ < 0x1p-20f; }

  Json to_json() const;
  void from_json(const Json& json);  // throws Json::exception

 private:
  Options options_;
  float scale_;
  int64_t growth_tracker_ = 0;
};

}  // namespace skytrain::train
