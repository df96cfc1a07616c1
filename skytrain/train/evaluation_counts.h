// skytrain/train/evaluation_counts.h
//
// What one thread counts while it evaluates classes, and the metrics that follow. No tensors.

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace skytrain::train {

struct Mistake {
  uint64_t index = 0;
  int64_t label = 0, predicted = 0;
  double probability = 0;  // that the model gave to `predicted`
};

inline constexpr int64_t kMaxConfusionClasses = 200;
inline constexpr size_t kMaxMistakes = 24;

class ClassCounts {
 public:
  explicit ClassCounts(int64_t classes);

  // A batch of n samples, of these indices in the data set. log_probabilities: [n, classes], row-major.
  void add_batch(const float* log_probabilities, const int64_t* labels, std::span<const uint64_t> indices);
  void merge(const ClassCounts& other);

  // [label * classes + predicted]; empty beyond kMaxConfusionClasses.
  const std::vector<int64_t>& confusion() const { return confusion_; }
  // At most kMaxMistakes, most confident first.
  const std::vector<Mistake>& mistakes() const { return mistakes_; }
  // top1, top5 (of more than 5 classes) and f1: the mean over the classes that occur, as label or prediction, of
  // 2 tp / (2 tp + fp + fn), as sklearn.metrics.f1_score(average="macro").
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  void keep_most_confident();

  int64_t classes_, samples_ = 0, correct_ = 0, among_five_ = 0;
  std::vector<int64_t> labelled_, predicted_, right_;  // by class
  std::vector<int64_t> confusion_;
  std::vector<Mistake> mistakes_;
};

}  // namespace skytrain::train
