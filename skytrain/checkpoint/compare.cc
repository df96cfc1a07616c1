#include "skytrain/checkpoint/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {
namespace {

struct Array {
  const ArrayInfo* info = nullptr;
  std::span<const std::byte> bytes;
};

class Arrays {
 public:
  Arrays(const FileSystem& fs, const std::string& path) : manifest_(read_manifest(fs, path)) {
    for (const Manifest::File& file : manifest_.files) files_.push_back(load_file(fs, path, file));
    for (const LoadedFile& file : files_) {
      for (const auto& [name, info] : file.header().arrays) arrays_[name] = {&info, file.bytes(name)};
    }
  }
  const std::map<std::string, Array>& all() const { return arrays_; }
  const Json& state() const { return manifest_.state; }

 private:
  Manifest manifest_;
  std::vector<LoadedFile> files_;
  std::map<std::string, Array> arrays_;
};

std::string describe(const ArrayInfo& info) {
  std::vector<std::string> extents;
  for (const int64_t extent : info.shape) extents.push_back(std::to_string(extent));
  return str(dtype_name(info.dtype), " [", join(extents, ", "), "]");
}

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023, sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

// As a number; of integers beyond 2^53 the nearest.
bool value_at(Dtype dtype, const std::byte* at, double& value) {
  const auto read = [at]<class T>(T) {
    T bits;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
  };
  switch (dtype) {
    case Dtype::kF64:
      value = read(double());
      return true;
    case Dtype::kF32:
      value = static_cast<double>(read(float()));
      return true;
    case Dtype::kF16:
      value = half_value(read(uint16_t()));
      return true;
    case Dtype::kBF16:
      value = static_cast<double>(std::bit_cast<float>(uint32_t{read(uint16_t())} << 16));
      return true;
    case Dtype::kI64:
      value = static_cast<double>(read(int64_t()));
      return true;
    case Dtype::kI32:
      value = read(int32_t());
      return true;
    case Dtype::kI16:
      value = read(int16_t());
      return true;
    case Dtype::kI8:
      value = read(int8_t());
      return true;
    case Dtype::kU8:
    case Dtype::kBool:
      value = read(uint8_t());
      return true;
  }
  return false;
}

TensorDifference compare_values(const std::string& name, const Array& a, const Array& b) {
  TensorDifference difference{.name = name};
  const size_t size = dtype_size(a.info->dtype);
  for (size_t at = 0; at < a.bytes.size(); at += size) {
    if (std::memcmp(a.bytes.data() + at, b.bytes.data() + at, size) == 0) continue;
    ++difference.elements;
    double first = 0, second = 0;
    if (!value_at(a.info->dtype, a.bytes.data() + at, first)) continue;
    value_at(b.info->dtype, b.bytes.data() + at, second);
    const double apart = std::abs(first - second);
    // No number is above NaN, and NaN is not at most any.
    if (!std::isnan(difference.most) && !(apart <= difference.most)) difference.most = apart;
  }
  return difference;
}

// What the clock says differs between any two runs.
Json without_clocks(Json state) {
  if (!state.is_object() || !state.contains("run") || !state["run"].is_object()) return state;
  for (const char* key : {"time", "log_time", "evaluation_seconds", "checkpoint_seconds"}) state["run"].erase(key);
  for (const char* key : {"evaluation", "best"}) {
    if (state["run"].contains(key) && state["run"][key].is_object()) state["run"][key].erase("seconds");
  }
  return state;
}

}  // namespace

Comparison compare(const FileSystem& fs, const std::string& first, const std::string& second) {
  const Arrays a(fs, first), b(fs, second);
  std::set<std::string> names;
  for (const auto& [name, array] : a.all()) names.insert(name);
  for (const auto& [name, array] : b.all()) names.insert(name);
  Comparison result;
  result.tensors = names.size();
  result.state_equal = without_clocks(a.state()) == without_clocks(b.state());
  using Kind = TensorDifference::Kind;
  for (const std::string& name : names) {
    const auto in_a = a.all().find(name), in_b = b.all().find(name);
    if (in_a == a.all().end() || in_b == b.all().end()) {
      const bool only_first = in_b == b.all().end();
      result.differences.push_back({.kind = only_first ? Kind::kOnlyFirst : Kind::kOnlySecond,
                                    .name = name,
                                    .detail = describe(*(only_first ? in_a : in_b)->second.info)});
    } else if (in_a->second.info->dtype != in_b->second.info->dtype ||
               in_a->second.info->shape != in_b->second.info->shape) {
      result.differences.push_back({.kind = Kind::kShape,
                                    .name = name,
                                    .detail = describe(*in_a->second.info) + " and " + describe(*in_b->second.info)});
    } else if (!std::ranges::equal(in_a->second.bytes, in_b->second.bytes)) {
      result.differences.push_back(compare_values(name, in_a->second, in_b->second));
    }
  }
  return result;
}

}  // namespace skytrain::checkpoint
