// skytrain/train/stopped.h

#pragma once
#include <functional>

namespace skytrain::train {

// Thrown out of what prepares a run when it is to stop: there is nothing of it to save.
struct Stopped {};

inline void throw_if_stopped(const std::function<bool()>& stop) {
  if (stop && stop()) throw Stopped();
}

}  // namespace skytrain::train
