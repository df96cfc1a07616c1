#include "skytrain/train/evaluation_counts.h"

#include <algorithm>
#include <cmath>

namespace skytrain::train {
namespace {

constexpr int64_t kFew = 5;

bool more_confident(const Mistake& a, const Mistake& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.index < b.index;
}

void add(std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

ClassCounts::ClassCounts(int64_t classes)
    : classes_(classes), labelled_(classes), predicted_(classes), right_(classes) {
  if (classes <= kMaxConfusionClasses) confusion_.resize(classes * classes);
}

void ClassCounts::add_batch(const float* log_probabilities, const int64_t* labels, std::span<const uint64_t> indices) {
  const float* row = log_probabilities;
  for (size_t i = 0; i < indices.size(); ++i, row += classes_) {
    const int64_t label = labels[i];
    const int64_t predicted = std::max_element(row, row + classes_) - row;  // the first of equal ones, as argmax
    ++samples_;
    ++labelled_[label];
    ++predicted_[predicted];
    if (!confusion_.empty()) ++confusion_[label * classes_ + predicted];
    if (predicted == label) {
      ++correct_;
      ++among_five_;
      ++right_[label];
      continue;
    }
    among_five_ += std::count_if(row, row + classes_, [&](float value) { return value > row[label]; }) < kFew;
    mistakes_.push_back({indices[i], label, predicted, std::exp(double(row[predicted]))});
  }
  keep_most_confident();
}

void ClassCounts::keep_most_confident() {
  std::sort(mistakes_.begin(), mistakes_.end(), more_confident);
  if (mistakes_.size() > kMaxMistakes) mistakes_.resize(kMaxMistakes);
}

void ClassCounts::merge(const ClassCounts& other) {
  samples_ += other.samples_;
  correct_ += other.correct_;
  among_five_ += other.among_five_;
  add(labelled_, other.labelled_);
  add(predicted_, other.predicted_);
  add(right_, other.right_);
  add(confusion_, other.confusion_);
  mistakes_.insert(mistakes_.end(), other.mistakes_.begin(), other.mistakes_.end());
  keep_most_confident();
}

std::vector<std::pair<std::string, double>> ClassCounts::metrics() const {
  double f1 = 0;
  int64_t occurring = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    const int64_t both = labelled_[c] + predicted_[c];  // 2 tp + fp + fn
    if (both == 0) continue;
    ++occurring;
    f1 += 2 * double(right_[c]) / double(both);
  }
  std::vector<std::pair<std::string, double>> metrics = {{"top1", double(correct_) / double(samples_)}};
  if (classes_ > kFew) metrics.emplace_back("top5", double(among_five_) / double(samples_));
  metrics.emplace_back("f1", f1 / double(occurring));
  return metrics;
}

}  // namespace skytrain::train
