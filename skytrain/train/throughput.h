// skytrain/train/throughput.h
//
// How much of the machine's arithmetic a run used: model FLOPs utilisation (MFU; Chowdhery et al. 2022, "PaLM",
// appendix B) against what matrix products reach on the same devices.

#pragma once
#include "skytrain/base/json.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

// {"flops_per_sample", "flops_per_second", "peak_flops_per_second", "mfu"}. A training step counts three forward passes
// (forward, and a backward pass of twice its work); what activation checkpointing computes again is not counted. The
// peak is measured now, in some 100 ms: all replicas multiply square matrices in the run's precision at once.
OrderedJson throughput_json(Engine& engine, double samples_per_second);

}  // namespace skytrain::train
