// skytrain/recipe/recipe.h
//
// The typed recipe: what a run is to do, after YAML, --set and defaults have been put together and checked.
// A plain value; copy freely. Where a field is optional, "no value" means `auto` unless its comment says otherwise:
// whoever decides writes the decision into the resolved recipe, so that a resumed run replays it.
//
// A field needs two lines: here, and in sections.cc, from which parsing, JSON, --explain and the reference derive.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/recipe/duration.h"

namespace skytrain::recipe {

struct ModelSpec {
  std::string name;                          // simplecnn | mlp | convnet
  int64_t classes = 10;                      // 2..1,000,000
  std::vector<int64_t> hidden = {256, 128};  // mlp: width of each hidden layer, 1..65536 each, at most 64
  int64_t width = 32;                        // convnet: channels of the first block, 4..1024

  bool operator==(const ModelSpec&) const = default;
};

struct DatasetSpec {
  std::string path;    // folder or file, made absolute against the recipe's folder; "" for synthetic
  std::string format;  // idx | synthetic
  std::string split;   // idx: train | test (which pair of files of the folder)
  // synthetic: class prototypes plus noise, a pure function of (seed of the recipe, index)
  uint64_t samples = 10000;                       // >= 1
  int64_t channels = 1, height = 28, width = 28;  // 1..4096 each

  bool operator==(const DatasetSpec&) const = default;
};

struct TransformSpec {
  std::string name;               // normalize | pad_crop
  std::vector<double> mean, std;  // normalize: one value a channel (or one for all); applied to pixels scaled to [0,1]
  int64_t pad = 0;                // pad_crop: zero padding on each side before a random crop, training only

  bool operator==(const TransformSpec&) const = default;
};

struct DataSpec {
  DatasetSpec train;
  std::optional<DatasetSpec> eval;  // none: no evaluation
  std::vector<TransformSpec> transforms;

  bool operator==(const DataSpec&) const = default;
};

struct OptimizerSpec {
  std::string name;                   // sgd | adam
  double lr = 0;                      // > 0, required
  double momentum = 0;                // sgd: [0, 1)
  bool nesterov = false;              // sgd: needs momentum > 0
  double beta1 = 0.9, beta2 = 0.999;  // adam: [0, 1); written `betas: [0.9, 0.999]`
  double eps = 1e-8;                  // adam: > 0
  double weight_decay = 0;            // >= 0, added to the gradient (L2), as torch.optim.SGD and Adam do

  bool operator==(const OptimizerSpec&) const = default;
};

struct ScheduleSpec {
  std::string name = "constant";               // constant | cosine
  Duration warmup{0, Duration::Unit::kSteps};  // linear from lr/(warm-up steps) to lr
  double min_lr = 0;                           // cosine: where it ends, [0, lr]

  bool operator==(const ScheduleSpec&) const = default;
};

struct TrainSpec {
  Duration length{1, Duration::Unit::kEpochs};  // written `epochs: 2`, or `steps: 500`
  int64_t batch = 0;                            // samples per optimizer step over all devices, >= 1, required
  std::optional<int64_t> slot;                  // samples per micro-batch, 1..batch; auto: chosen from the devices
  std::string loss = "cross_entropy";
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::string precision = "auto";   // fp32 | bf16 | auto
  std::optional<double> clip_norm;  // none: no clipping; else > 0, of the global gradient norm
  bool deterministic = false;       // true: refuse kernels whose result depends on the run

  bool operator==(const TrainSpec&) const = default;
};

struct EvalSpec {
  int64_t batch = 1000;  // samples per forward pass, >= 1; does not change the result beyond rounding
  Duration every{1, Duration::Unit::kEpochs};

  bool operator==(const EvalSpec&) const = default;
};

struct CheckpointSpec {
  std::vector<Duration> every{{1, Duration::Unit::kEpochs}, {600, Duration::Unit::kSeconds}};  // empty: at the end only
  int64_t keep = 3;                                                                            // newest ones kept, >= 1

  bool operator==(const CheckpointSpec&) const = default;
};

struct Recipe {
  int64_t version = 1;
  std::string name;  // letters, digits, . _ - + = ; names the folder under runs/
  uint64_t seed = 0;
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  EvalSpec eval;
  CheckpointSpec checkpoint;
  std::optional<int64_t> devices;  // CPU: replicas, one per core, 1..256; auto: as many as pay

  bool operator==(const Recipe&) const = default;
};

}  // namespace skytrain::recipe
