#include "skytrain/train/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/tensor/memory_budget.h"

namespace skytrain::train {
namespace {

// The sum of the losses of a batch, in double: that of a large set in float32 would lose its last samples.
double cross_entropy(const at::Tensor& log_probabilities, const int64_t* labels) {
  const float* row = log_probabilities.const_data_ptr<float>();
  double loss = 0;
  for (int64_t i = 0; i < log_probabilities.size(0); ++i, row += log_probabilities.size(1))
    loss -= double(row[labels[i]]);
  return loss;
}

// How many outputs are on the right side of 0.
int64_t right_sides(const at::Tensor& output, const at::Tensor& values) {
  return output.gt(0).eq(values.gt(0.5)).sum().item<int64_t>();
}

}  // namespace

std::optional<EvaluationDetails> evaluate(Engine& engine, const EvaluationSet& set, int64_t outputs, int64_t batch,
                                          const std::function<bool()>& stop) {
  const data::DatasetInfo& info = set.info();
  const EvaluationSet::Batches batches = set.batches(uint64_t(batch));
  const bool of_classes = info.values == 0;
  const Loss loss(engine.options().loss.kind());
  std::vector<double> losses(batches.count());  // by batch, so that their sum does not depend on who computed which
  std::vector<ClassCounts> counts(engine.replicas(), ClassCounts(of_classes ? outputs : 0));
  std::vector<int64_t> right(engine.replicas());
  std::vector<uint64_t> samples(engine.replicas());
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stopped{false};
  const Engine::AveragedWeights averaged(engine);
  engine.share_buffers();
  engine.for_each_replica([&](int replica) {
    const at::NoGradGuard no_grad;
    model::Model& model = engine.model(replica);
    model.set_training(false);
    std::vector<uint64_t> indices;
    at::Tensor images, target;
    const uint64_t count = batches.count();
    for (uint64_t b; (b = next.fetch_add(1)) < count && !stopped;) {
      if (stop()) {
        stopped = true;
        return;
      }
      set.fill(batches.range(b), indices, images, target);
      const int64_t length = images.size(0);
      if (length == 0) continue;
      samples[replica] += uint64_t(length);
      const Autocast autocast(engine.options().precision);
      const at::Tensor output =
          model.forward(images.to(engine.options().dtype).contiguous(engine.options().memory_format)).to(at::kFloat);
      if (of_classes) {
        const at::Tensor log_probabilities = at::log_softmax(output, 1).contiguous();
        const int64_t* const labels = target.const_data_ptr<int64_t>();
        counts[replica].add_batch(log_probabilities.const_data_ptr<float>(), labels, indices);
        losses[b] = loss.kind() == Loss::Kind::kCrossEntropy ? cross_entropy(log_probabilities, labels)
                                                             : loss.sum(output, target).item<double>();
      } else {
        losses[b] = loss.sum(output, target).item<double>();
        right[replica] += right_sides(output, target);
      }
    }
  });
  if (stopped) return std::nullopt;

  EvaluationDetails details;
  details.result.samples = std::accumulate(samples.begin(), samples.end(), uint64_t{0});
  if (details.result.samples == 0)
    throw Error(ErrorKind::kData, info.format, "none of the samples for evaluation can be used");
  details.result.loss = std::accumulate(losses.begin(), losses.end(), 0.0) / double(details.result.samples);
  if (of_classes) {
    for (size_t r = 1; r < counts.size(); ++r) counts[0].merge(counts[r]);
    details.classes = outputs;
    details.confusion = counts[0].confusion();
    details.mistakes = counts[0].mistakes();
    details.result.metrics = counts[0].metrics();
  } else if (loss.kind() == Loss::Kind::kBce) {
    const int64_t all = std::accumulate(right.begin(), right.end(), int64_t{0});
    details.result.metrics = {{"accuracy", double(all) / double(details.result.samples * uint64_t(info.values))}};
  } else {
    details.result.metrics = {{"rmse", std::sqrt(details.result.loss)}};
  }
  return details;
}

std::optional<EvaluationDetails> evaluate_within_memory(Engine& engine, const EvaluationSet& set, int64_t outputs,
                                                        int64_t& batch, const std::function<bool()>& stop,
                                                        const std::function<void(const std::string&)>& note) {
  for (;;) {
    try {
      return evaluate(engine, set, outputs, batch, stop);
    } catch (const tensor::OutOfMemory& full) {
      if (batch == 1)
        throw Error(ErrorKind::kEnvironment, "memory_budget", str(full.what(), "; a single sample does not fit"),
                    "raise memory_budget, or use fewer devices");
      batch = (batch + 1) / 2;
      note(str(full.what(), ": evaluating in batches of ", batch));
    }
  }
}

OrderedJson to_json(const EvaluationDetails& details, const data::Dataset& dataset) {
  const data::DatasetInfo& info = dataset.info();
  OrderedJson json = to_json(details.result);
  json["step"] = details.result.step;
  json.erase("seconds");
  if (details.classes == 0) return json;
  json["classes"] = OrderedJson::array();
  for (int64_t c = 0; c < details.classes; ++c)
    json["classes"].push_back(size_t(c) < info.class_names.size() ? info.class_names[c] : std::to_string(c));
  if (!details.confusion.empty()) {
    json["confusion"] = OrderedJson::array();
    for (int64_t c = 0; c < details.classes; ++c)
      json["confusion"].push_back(std::vector<int64_t>(details.confusion.begin() + c * details.classes,
                                                       details.confusion.begin() + (c + 1) * details.classes));
  }
  json["mistakes"] = OrderedJson::array();
  const size_t bytes = size_t(info.channels * info.height * info.width);
  if (bytes > kMaxPictureBytes || info.elements != data::Elements::kUint8) return json;
  data::Scratch scratch;
  for (const Mistake& mistake : details.mistakes) {
    const char* pixels = nullptr;
    try {
      pixels = reinterpret_cast<const char*>(dataset.pixels(mistake.index, scratch));
    } catch (const Error& error) {
      // Where only a part of it was looked at, the damage may lie in the rest.
      if (error.kind() != ErrorKind::kData) throw;
      continue;
    }
    json["mistakes"].push_back({{"index", mistake.index},
                                {"name", dataset.name(mistake.index)},
                                {"label", mistake.label},
                                {"predicted", mistake.predicted},
                                {"probability", mistake.probability},
                                {"channels", info.channels},
                                {"height", info.height},
                                {"width", info.width},
                                {"pixels", base64({pixels, bytes})}});
  }
  return json;
}

}  // namespace skytrain::train
