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
  std::string name;                          // a name of the zoo (model/zoo.h), torchscript or plugin
  int64_t classes = 10;                      // outputs for each sample: classes, or values (mse, bce); 1..1,000,000
  std::vector<int64_t> hidden = {256, 128};  // mlp: width of each hidden layer, 1..65536 each, at most 64
  int64_t width = 32;                        // convnet: channels of the first block, 4..1024
  std::string stem = "imagenet";             // resnet*: imagenet (7x7 stride 2, max pool) | cifar (3x3, no pool)
  std::string path;                          // torchscript: a .pt file; plugin: a shared library; absolute
  std::string architecture;                  // plugin: which of the library's models; "": its only one
  std::optional<std::string> init;           // file of weights to start from (.pt, .pth, .safetensors); none: random
  std::vector<std::string> init_except;      // patterns of names that start at random nevertheless

  bool operator==(const ModelSpec&) const = default;
};

struct DatasetSpec {
  std::string path;                  // folder or file, made absolute against the recipe's folder; "" for synthetic
  std::string format;                // idx | cifar10 | imagefolder | webdataset | mds | csv | jsonl | synthetic
  std::string split;                 // idx, cifar10: train | test (which files of the folder)
  std::optional<std::string> image;  // jsonl: the key of the picture's file; none: rows of numbers
  int64_t size = 0;                  // sets of pictures: height and width of the samples, 1..4096
  std::optional<int64_t> resize;  // sets of pictures: of the shorter side before the centre crop, >= size; none: size
  bool exif_orientation = false;  // sets of pictures: turn them upright, as the file's Exif says
  // csv, jsonl: the column (key) of the class, or those of the values; the rest are features, where there is no image
  std::vector<std::string> target;
  // synthetic: class prototypes plus noise, a pure function of (seed of the recipe, index)
  uint64_t samples = 10000;                       // >= 1
  int64_t channels = 1, height = 28, width = 28;  // 1..4096 each

  bool operator==(const DatasetSpec&) const = default;
};

struct TransformSpec {
  std::string name;               // normalize | pad_crop | flip | random_resized_crop | color_jitter | …
  std::vector<double> mean, std;  // normalize: one value a channel (or one for all); applied to pixels scaled to [0,1]
  int64_t pad = 0;                // pad_crop: zero padding on each side before a random crop, training only
  double p = 0.5;                 // flip, random_erasing: probability, training only
  // random_resized_crop, random_erasing: share of the picture's area, and width / height (erasing: height / width); two
  // numbers each. Empty: [0.08, 1] and [3/4, 4/3] of a crop, [0.02, 0.33] and [0.3, 3.3] of erasing.
  std::vector<double> scale, ratio;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;  // color_jitter
  int64_t ops = 2, magnitude = 9;                                // rand_augment

  bool operator==(const TransformSpec&) const = default;
};

// Training begins with smaller pictures than it ends with.
struct ProgressiveResizingSpec {
  double initial_scale = 0.5;      // of height and width, (0, 1]
  double delay_fraction = 0.5;     // part of the run at that scale
  double finetune_fraction = 0.2;  // part of the run at the end that is at full size; the two together: at most 1
  int64_t size_increment = 4;      // sizes are multiples of it, in pixels

  bool operator==(const ProgressiveResizingSpec&) const = default;
};

struct DataSpec {
  DatasetSpec train;
  std::optional<DatasetSpec> eval;  // none: no evaluation
  std::vector<TransformSpec> transforms;
  std::vector<std::string>
      buckets;  // "HEIGHTxWIDTH": shapes of batches, each of pictures of like shape; empty: one size
  std::optional<ProgressiveResizingSpec> progressive_resizing;
  int64_t skip_bad_samples = 0;    // so many samples of a set that can't be decoded are left out, one more ends the run
  std::optional<int64_t> workers;  // threads that make batches ahead, 0: none; auto: as many as the trainer waits for

  bool operator==(const DataSpec&) const = default;
};

// What differs for the parameters whose names match `match` (a shell pattern: "layer1.*"). The first group that matches
// a parameter holds for it.
struct ParameterGroupSpec {
  std::string match;
  double lr_scale = 1;                 // times the scheduled learning rate, >= 0; 0: frozen
  std::optional<double> weight_decay;  // in place of the optimizer's, >= 0

  bool operator==(const ParameterGroupSpec&) const = default;
};

struct OptimizerSpec {
  std::string name;                   // sgd | adam | adamw | lamb
  double lr = 0;                      // > 0, required
  double momentum = 0;                // sgd: [0, 1)
  bool nesterov = false;              // sgd: needs momentum > 0
  double beta1 = 0.9, beta2 = 0.999;  // adam, adamw, lamb: [0, 1); written `betas: [0.9, 0.999]`
  double eps = 1e-8;                  // adam, adamw, lamb: > 0
  double weight_decay = 0;            // >= 0; sgd, adam: added to the gradient; adamw, lamb: decoupled
  bool no_decay = false;              // biases and normalisation layers (parameters of one dimension) are not decayed
  std::vector<ParameterGroupSpec> groups;

  bool operator==(const OptimizerSpec&) const = default;
};

struct ScheduleSpec {
  // constant | step | multistep | cosine | cosine_restarts | linear | polynomial | one_cycle | plateau
  std::string name = "constant";
  Duration warmup{0, Duration::Unit::kSteps};        // linear from lr/(warm-up steps) to lr
  double min_lr = 0;                                 // where it ends, [0, lr]
  Duration every{30, Duration::Unit::kEpochs};       // step: between two drops
  std::vector<Duration> milestones;                  // multistep: of the drops, rising
  double gamma = 0.1;                                // step, multistep, plateau: factor of a drop, (0, 1]
  Duration period{10, Duration::Unit::kEpochs};      // cosine_restarts: of the first cosine
  int64_t period_factor = 1;                         // cosine_restarts: each period is so many times the last
  double power = 1;                                  // polynomial: > 0
  double rise = 0.3;                                 // one_cycle: part of the run in which the rate rises
  double start_factor = 25, final_factor = 1e4;      // one_cycle: starts at lr/start, ends at lr/(start * final)
  std::string shape = "cosine";                      // one_cycle: cosine | linear
  bool three_phase = false;                          // one_cycle: down as long as up, then to the end
  bool cycle_momentum = true;                        // one_cycle: momentum (beta1) goes the other way
  double base_momentum = 0.85, max_momentum = 0.95;  // one_cycle
  std::string metric = "loss";                       // plateau: loss | top1, of the evaluation
  int64_t patience = 10, cooldown = 0;               // plateau: evaluations
  double threshold = 1e-4;                           // plateau: relative change that counts as better

  bool operator==(const ScheduleSpec&) const = default;
};

// Ends a run whose evaluation no longer becomes better.
struct EarlyStopSpec {
  std::string metric = "loss";  // loss | top1, of the evaluation
  int64_t patience = 5;         // evaluations in a row that are not better, >= 1
  double min_delta = 0;         // a smaller change is not better, >= 0

  bool operator==(const EarlyStopSpec&) const = default;
};

// What is done about a loss far above those before it.
struct LossSpikeSpec {
  double threshold = 6;           // standard deviations above the moving mean, > 0
  int64_t window = 100;           // steps that the mean and deviation are of, >= 2
  std::string action = "record";  // record | skip (the update) | rollback (to the checkpoint before, and skip there)

  bool operator==(const LossSpikeSpec&) const = default;
};

struct TrainSpec {
  Duration length{1, Duration::Unit::kEpochs};  // written `epochs: 2`, or `steps: 500`
  int64_t batch = 0;                            // samples per optimizer step over all devices, required; 0: auto
  std::optional<int64_t> slot;                  // samples per micro-batch, 1..batch; auto: chosen from the devices
  std::string loss = "cross_entropy";           // cross_entropy | mse | bce
  double label_smoothing = 0;                   // cross_entropy: [0, 1)
  std::optional<double> mixup, cutmix;          // alpha of the Beta distribution, > 0; none: off; both: one at random
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::string precision = "auto";         // fp32 | bf16 | fp16 | auto
  std::optional<double> clip_norm;        // none: no clipping; else > 0, of the global gradient norm
  std::optional<double> clip_value;       // none: no clipping; else > 0, of each element of the gradient
  std::optional<double> ema;              // decay of the running mean of the weights, (0, 1); evaluated in their place
  std::string memory_format = "auto";     // contiguous | channels_last | auto
  bool activation_checkpointing = false;  // true: a block's activations are computed again in backward
  std::optional<EarlyStopSpec> early_stop;
  std::optional<LossSpikeSpec> loss_spike;
  bool deterministic = false;  // true: refuse kernels whose result depends on the run

  bool operator==(const TrainSpec&) const = default;
};

struct EvalSpec {
  int64_t batch = 1000;  // samples per forward pass, >= 1; does not change the result beyond rounding
  Duration every{1, Duration::Unit::kEpochs};

  bool operator==(const EvalSpec&) const = default;
};

struct CheckpointSpec {
  std::vector<Duration> every{{1, Duration::Unit::kEpochs}, {600, Duration::Unit::kSeconds}};  // empty: at the end only
  Duration mtbf{4 * 3600, Duration::Unit::kSeconds};  // mean time between failures, for `auto` in every
  int64_t keep = 3;                                   // newest ones kept, >= 1
  std::optional<Duration> keep_every;  // not of seconds: a checkpoint is taken so often and kept for good; none: not
  std::optional<std::string> best;     // loss | top1: those of the best evaluations are kept too; none: not
  int64_t keep_best = 1;               // how many of them, >= 1

  bool operator==(const CheckpointSpec&) const = default;
};

// What a run does when its machine is about to go, or its worker has gone.
struct ElasticSpec {
  Duration grace{30, Duration::Unit::kSeconds};  // from SIGTERM or SIGUSR1 to the kill
  int64_t max_restarts = 3;                      // of workers that died, in one attempt, >= 0

  bool operator==(const ElasticSpec&) const = default;
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
  ElasticSpec elastic;
  std::optional<int64_t> devices;  // CPU: replicas, one per core, 1..256; auto: as many as pay
  // Bytes that tensors may take, >= 1; auto: nine tenths of what is free when the run starts.
  std::optional<uint64_t> memory_budget;

  bool operator==(const Recipe&) const = default;
};

}  // namespace skytrain::recipe
