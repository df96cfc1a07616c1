#include "skytrain/train/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

// What one replica, or one batch, has counted.
struct Counts {
  std::vector<int64_t> confusion;
  std::vector<Mistake> mistakes;
  int64_t correct = 0;
};

bool more_confident(const Mistake& a, const Mistake& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.index < b.index;
}

void keep_most_confident(std::vector<Mistake>& mistakes) {
  std::sort(mistakes.begin(), mistakes.end(), more_confident);
  if (mistakes.size() > kMaxMistakes) mistakes.resize(kMaxMistakes);
}

// Adds one batch. log_probabilities: [n, classes] float32. Returns the sum of losses.
double count_batch(const at::Tensor& log_probabilities, const int64_t* labels, uint64_t first, int64_t classes,
                   Counts& counts) {
  const int64_t samples = log_probabilities.size(0);
  const float* row = log_probabilities.const_data_ptr<float>();
  double loss = 0;
  for (int64_t i = 0; i < samples; ++i, row += classes) {
    const int64_t predicted = std::max_element(row, row + classes) - row;  // the first of equal ones, as argmax
    loss -= double(row[labels[i]]);
    counts.correct += predicted == labels[i];
    if (!counts.confusion.empty()) ++counts.confusion[labels[i] * classes + predicted];
    if (predicted != labels[i])
      counts.mistakes.push_back({first + uint64_t(i), labels[i], predicted, std::exp(double(row[predicted]))});
  }
  return loss;
}

}  // namespace

std::optional<EvaluationDetails> evaluate(Engine& engine, const data::Dataset& dataset, const data::BatchFiller& filler,
                                          int64_t classes, int64_t batch, const std::function<bool()>& stop) {
  const uint64_t samples = dataset.info().samples;
  const uint64_t step = std::min(uint64_t(batch), samples);
  const uint64_t batches = (samples + step - 1) / step;
  std::vector<double> losses(batches);  // by batch, so that their sum does not depend on who computed which
  std::vector<Counts> counts(engine.replicas());
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stopped{false};
  engine.share_buffers();
  engine.for_each_replica([&](int replica) {
    const at::NoGradGuard no_grad;
    model::Model& model = engine.model(replica);
    model.set_training(false);
    Counts& mine = counts[replica];
    if (classes <= kMaxConfusionClasses) mine.confusion.resize(classes * classes);
    const model::InputShape& input = engine.options().input;
    std::vector<uint64_t> indices;
    at::Tensor images, labels;
    for (uint64_t b; (b = next.fetch_add(1)) < batches && !stopped;) {
      if (stop()) {
        stopped = true;
        return;
      }
      const uint64_t first = b * step, count = std::min(step, samples - first);
      if (indices.size() != count) {
        indices.resize(count);
        images = at::empty({int64_t(count), input.channels, input.height, input.width}, at::kFloat);
        labels = at::empty({int64_t(count)}, at::kLong);
      }
      std::iota(indices.begin(), indices.end(), first);
      filler.fill(/*epoch=*/0, indices, images.mutable_data_ptr<float>(), labels.mutable_data_ptr<int64_t>());
      const Autocast autocast(engine.options().precision);
      const at::Tensor logits = model.forward(images.to(engine.options().dtype));
      losses[b] = count_batch(at::log_softmax(logits.to(at::kFloat), 1).contiguous(), labels.const_data_ptr<int64_t>(),
                              first, classes, mine);
      keep_most_confident(mine.mistakes);
    }
  });
  if (stopped) return std::nullopt;

  EvaluationDetails details;
  details.classes = classes;
  details.result.samples = samples;
  details.confusion = counts[0].confusion;
  int64_t correct = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    correct += counts[r].correct;
    details.mistakes.insert(details.mistakes.end(), counts[r].mistakes.begin(), counts[r].mistakes.end());
    if (r > 0)
      for (size_t i = 0; i < details.confusion.size(); ++i) details.confusion[i] += counts[r].confusion[i];
  }
  keep_most_confident(details.mistakes);
  details.result.loss = std::accumulate(losses.begin(), losses.end(), 0.0) / double(samples);
  details.result.top1 = double(correct) / double(samples);
  return details;
}

OrderedJson to_json(const EvaluationDetails& details, const data::Dataset& dataset) {
  const data::DatasetInfo& info = dataset.info();
  OrderedJson json = {{"step", details.result.step},
                      {"samples", details.result.samples},
                      {"loss", details.result.loss},
                      {"top1", details.result.top1}};
  json["classes"] = OrderedJson::array();
  for (int64_t c = 0; c < details.classes; ++c) json["classes"].push_back(std::to_string(c));
  if (!details.confusion.empty()) {
    json["confusion"] = OrderedJson::array();
    for (int64_t c = 0; c < details.classes; ++c)
      json["confusion"].push_back(std::vector<int64_t>(details.confusion.begin() + c * details.classes,
                                                       details.confusion.begin() + (c + 1) * details.classes));
  }
  json["mistakes"] = OrderedJson::array();
  const size_t bytes = size_t(info.channels * info.height * info.width);
  if (bytes > kMaxPictureBytes) return json;
  for (const Mistake& mistake : details.mistakes) {
    const char* pixels = reinterpret_cast<const char*>(dataset.pixels(mistake.index));
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
