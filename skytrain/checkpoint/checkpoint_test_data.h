// skytrain/checkpoint/checkpoint_test_data.h
//
// For tests: a small state whose content follows from its step, and ways to damage files.

#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {

// Arrays of several dtypes, made from `step`; a scalar and an empty one among them.
class TestState {
 public:
  explicit TestState(uint64_t step) {
    std::vector<float> weight(6);
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(step) + static_cast<float>(i) / 8;
    add("fc.weight", Dtype::kF32, {2, 3}, weight.data(), weight.size() * 4);
    const int64_t count = static_cast<int64_t>(step) * 1000;
    add("optimizer.count", Dtype::kI64, {}, &count, 8);
    const uint8_t mask[] = {1, 0, static_cast<uint8_t>(step & 1)};
    add("mask", Dtype::kBool, {3}, mask, 3);
    add("nothing", Dtype::kF16, {0, 4}, nullptr, 0);
    manifest_.generation = 1;
    manifest_.step = step;
    manifest_.samples = step * 64;
    manifest_.world = 2;
    manifest_.created_unix_seconds = 1.7e9;
    manifest_.state = {{"lr", 0.125}, {"epoch", step / 10}};
  }

  const std::vector<NamedArray>& arrays() const { return arrays_; }
  const Manifest& manifest() const { return manifest_; }

 private:
  void add(const std::string& name, Dtype dtype, std::vector<int64_t> shape, const void* bytes, size_t size) {
    auto& copy = storage_.emplace_back(size);
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): without bytes there is no size
    if (size > 0) std::memcpy(copy.data(), bytes, size);
    arrays_.push_back({name, dtype, std::move(shape), copy});
  }

  std::vector<std::vector<std::byte>> storage_;  // moving a vector keeps its bytes in place
  std::vector<NamedArray> arrays_;
  Manifest manifest_;
};

inline std::string save(FileSystem& fs, const std::string& directory, uint64_t step) {
  const TestState state(step);
  return commit(fs, directory, state.manifest(), state.arrays());
}

// Whether the checkpoint at `path` is, bit for bit, the state of `step`.
inline bool holds(const FileSystem& fs, const std::string& path, uint64_t step) {
  const TestState state(step);
  const Manifest manifest = read_manifest(fs, path);
  if (manifest.step != step || manifest.samples != step * 64 || manifest.files.size() != 1) return false;
  const LoadedFile file = load_file(fs, path, manifest.files[0]);
  if (file.header().arrays.size() != state.arrays().size()) return false;
  for (const NamedArray& array : state.arrays()) {
    const auto bytes = file.bytes(array.name);
    if (bytes.size() != array.bytes.size()) return false;
    if (!bytes.empty() && std::memcmp(bytes.data(), array.bytes.data(), bytes.size()) != 0) return false;
  }
  return true;
}

inline void overwrite(FileSystem& fs, const std::string& path, std::string_view content) {
  const auto file = fs.open_write(path, FileSystem::Mode::kTruncate);
  file->append(content);
  file->sync();
  file->close();
}

}  // namespace skytrain::checkpoint
