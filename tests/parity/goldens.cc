#include "goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "skytrain/base/file_system.h"

namespace skytrain::parity {

Goldens::Goldens(const std::string& name) {
  const char* const folder = std::getenv("SKYTRAIN_GOLDENS");
  const std::string file = std::string(folder != nullptr ? folder : "tests/parity") + "/" + name;
  content_ = FileSystem::real().read_file(file);
  header_ = checkpoint::parse_safetensors_header(content_, content_.size(), file);
  cases_ = parse_json(header_.metadata.at("cases"), file);
}

std::vector<double> Goldens::operator[](const std::string& key) const {
  const auto found = header_.arrays.find(key);
  if (found == header_.arrays.end()) throw std::runtime_error("no golden " + key);
  std::vector<double> values((found->second.end - found->second.begin) / sizeof(double));
  std::memcpy(values.data(), content_.data() + found->second.begin, values.size() * sizeof(double));
  return values;
}

std::vector<std::string> Goldens::with_prefix(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (const auto& [key, info] : header_.arrays)
    if (key.starts_with(prefix)) keys.push_back(key);
  return keys;
}

uint64_t bits(uint64_t stream, uint64_t index) {
  uint64_t z = (stream << 32) + index + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double unit(uint64_t stream, uint64_t index) { return double(bits(stream, index) >> 11) * 0x1p-52 - 1.0; }

void fill_weights(const std::vector<tensor::NamedTensor>& parameters) {
  double fan_in = 1;
  bool norm = false;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor p = parameters[k].tensor.detach();
    const bool weight = parameters[k].name.ends_with("weight");
    if (weight) norm = p.dim() == 1;
    if (p.dim() > 1) fan_in = double(p.numel() / p.size(0));
    const double scale = 1.0 / std::sqrt(fan_in);
    for_each_element(p, [&](int64_t i) {
      const double u = unit(1000 + k, uint64_t(i));
      return norm ? (weight ? 1.0 + 0.25 * u : 0.125 * u) : u * scale;
    });
  }
}

void fill_picture(uint64_t sample, uint64_t classes, uint64_t signal, const at::Tensor& picture) {
  const uint64_t pixels = uint64_t(picture.numel()), of_picture = bits(1, sample) % classes;
  for_each_element(picture, [&](int64_t i) {
    const uint64_t prototype = bits(2, of_picture * pixels + uint64_t(i)) % 256;
    const uint64_t noise = bits(3, sample * pixels + uint64_t(i)) % 256;
    return (double((prototype * signal + noise * (4 - signal)) / 4) - 128.0) / 128.0;
  });
}

int64_t label_of(uint64_t sample, uint64_t classes) {
  const uint64_t drawn = bits(4, sample);
  return int64_t(drawn % 4 == 0 ? (drawn >> 32) % classes : bits(1, sample) % classes);
}

recipe::OptimizerSpec optimizer_spec(const Json& golden) {
  recipe::OptimizerSpec spec;
  spec.name = golden.at("name");
  spec.lr = golden.at("lr");
  spec.momentum = golden.value("momentum", spec.momentum);
  spec.nesterov = golden.value("nesterov", spec.nesterov);
  spec.beta1 = golden.value("beta1", spec.beta1);
  spec.beta2 = golden.value("beta2", spec.beta2);
  spec.eps = golden.value("eps", spec.eps);
  spec.weight_decay = golden.value("weight_decay", spec.weight_decay);
  return spec;
}

std::vector<double> sampled(const at::Tensor& tensor, int64_t most) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  const double* values = flat.const_data_ptr<double>();
  const int64_t count = flat.numel();
  long double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += values[i];
    squares += (long double)values[i] * values[i];
  }
  std::vector<double> result = {double(sum) / std::sqrt(double(count)), double(std::sqrt(squares))};
  const int64_t stride = std::max<int64_t>(1, (count + most - 1) / most);
  for (int64_t i = 0; i < count; i += stride) result.push_back(values[i]);
  return result;
}

void expect_close(const std::vector<double>& ours, const std::vector<double>& golden, const std::string& what,
                  double tolerance) {
  ASSERT_EQ(ours.size(), golden.size()) << what;
  size_t worst = 0;
  double largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::abs(ours[i] - golden[i]) / std::max(1.0, std::abs(golden[i]));
    if (!(difference <= largest)) worst = i, largest = difference;  // a NaN counts as the worst
  }
  EXPECT_LE(largest, tolerance) << what << "[" << worst << "]: " << (ours.empty() ? 0 : ours[worst]) << ", Python has "
                                << (golden.empty() ? 0 : golden[worst]);
}

}  // namespace skytrain::parity
