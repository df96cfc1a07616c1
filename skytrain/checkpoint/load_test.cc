#include "skytrain/checkpoint/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"
#include "skytrain/checkpoint/file_image.h"
#include "skytrain/checkpoint/manifest.h"

namespace skytrain::checkpoint {
namespace {

using ::testing::HasSubstr;

constexpr char kDirectory[] = "/run/checkpoints";
constexpr char kTensors[] = "/rank-0-of-1.safetensors";

// Memory for all tensors of a file.
class Memory {
 public:
  std::map<std::string, Destination> operator()(const TensorFile& file) {
    tensors.clear();
    std::map<std::string, Destination> destinations;
    for (const auto& [name, info] : file.header.arrays) {
      auto& bytes = tensors[name];
      bytes.assign(info.end - info.begin, std::byte{0x5a});
      destinations[name] = {bytes, [this, name = name] { ++done[name]; }};
    }
    return destinations;
  }
  Place place() {
    return [this](const TensorFile& file) { return (*this)(file); };
  }
  bool holds(std::span<const NamedArray> arrays) const {
    return tensors.size() == arrays.size() && std::all_of(arrays.begin(), arrays.end(), [&](const NamedArray& array) {
             const auto found = tensors.find(array.name);
             return found != tensors.end() && std::ranges::equal(found->second, array.bytes);
           });
  }

  std::map<std::string, std::vector<std::byte>> tensors;
  std::map<std::string, int> done;
};

using Reasons = std::map<std::string, std::string>;
Reasons reasons(const std::vector<Candidate>& skipped) {
  Reasons all;
  for (const Candidate& candidate : skipped) all[candidate.path] = candidate.reason;
  return all;
}

// Loads what find_newest_valid() finds, and passes over the same for the same reasons.
void expect_step(const FileSystem& fs, const std::string& directory, uint64_t step, const std::string& what) {
  std::vector<Candidate> skipped, expected;
  Memory memory;
  const auto loaded = load_newest_valid(fs, directory, memory.place(), &skipped);
  const auto found = find_newest_valid(fs, directory, &expected);
  ASSERT_TRUE(loaded && found) << what;
  EXPECT_EQ(loaded->manifest.step, step) << what;
  EXPECT_EQ(loaded->path, found->path) << what;
  EXPECT_EQ(reasons(skipped), reasons(expected)) << what;
  EXPECT_TRUE(memory.holds(TestState(step).arrays())) << what;
}

TEST(Load, PutsTheTensorsOfTheNewestInTheirPlaces) {
  MemoryFileSystem fs;
  for (uint64_t step : {3, 12, 7}) save(fs, kDirectory, step);
  expect_step(fs, kDirectory, 12, "");
  Memory memory;
  const auto loaded = load_newest_valid(fs, kDirectory, memory.place(), nullptr);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->manifest.state, TestState(12).manifest().state);
  EXPECT_EQ(memory.done,
            (std::map<std::string, int>{{"fc.weight", 1}, {"mask", 1}, {"nothing", 1}, {"optimizer.count", 1}}));
}

TEST(Load, WithoutCheckpointsLoadsNothing) {
  MemoryFileSystem fs;
  std::vector<Candidate> skipped;
  EXPECT_FALSE(load_newest_valid(fs, kDirectory, Memory().place(), &skipped));
  fs.make_directories(std::string(kDirectory) + "/step-00000001.tmp");
  EXPECT_FALSE(load_newest_valid(fs, kDirectory, Memory().place(), &skipped));
  EXPECT_EQ(skipped.size(), 1u);
}

TEST(Load, DamageAtAnyByteIsPassedOverAsBefore) {
  MemoryFileSystem fs;
  save(fs, kDirectory, 1);
  const std::string path = save(fs, kDirectory, 2) + kTensors, content = fs.read_file(path);
  for (size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    overwrite(fs, path, damaged);
    expect_step(fs, kDirectory, 1, "byte " + std::to_string(at));
  }
  for (size_t size = 0; size < content.size(); ++size) {
    overwrite(fs, path, content.substr(0, size));
    expect_step(fs, kDirectory, 1, "size " + std::to_string(size));
  }
  fs.remove_file(path);
  expect_step(fs, kDirectory, 1, "no file");
  overwrite(fs, path, content);
  expect_step(fs, kDirectory, 2, "mended");
}

// The manifest vouches for a file whose header is wrong: written so, not damaged.
TEST(Load, AHeaderThatLiesIsPassedOver) {
  MemoryFileSystem fs;
  save(fs, kDirectory, 1);
  const std::string folder = save(fs, kDirectory, 2), content = fs.read_file(folder + kTensors);
  for (const auto& [from, to] :
       {std::pair{"[2,3]", "[2,4]"}, {"[2,3]", "[9,3]"}, {"\"F32\"", "\"F99\""}, {"{", "["}, {"\"I64\"", "\"F16\""}}) {
    std::string lying = content;
    const size_t at = lying.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    lying.replace(at, std::strlen(from), to);
    overwrite(fs, folder + kTensors, lying);
    Manifest manifest = read_manifest(fs, folder);
    manifest.files[0].xxh128 = xxh128_hex(lying);
    overwrite(fs, folder + "/manifest.json", format_manifest(manifest));
    expect_step(fs, kDirectory, 1, to);
  }
}

TEST(Load, WhatHasNoPlaceIsHashedAllTheSame) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 2);
  std::vector<std::byte> weight(24);
  const Place place = [&](const TensorFile&) {
    return std::map<std::string, Destination>{{"fc.weight", {weight, {}}}};
  };
  EXPECT_EQ(load(fs, path, place).step, 2u);
  EXPECT_TRUE(std::ranges::equal(weight, TestState(2).arrays()[0].bytes));
  std::string content = fs.read_file(path + kTensors);
  content.back() ^= 1;  // of "mask"
  overwrite(fs, path + kTensors, content);
  EXPECT_THROW(load(fs, path, place), Error);
}

std::string refusal(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.message();
    return error.message();
  }
  return "was accepted";
}

TEST(Load, OfOneSaysWhatIsWrongWithIt) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 2), content = fs.read_file(path + kTensors);
  const auto load_it = [&] { load(fs, path, Memory().place()); };
  overwrite(fs, path + kTensors, content.substr(1) + "x");
  EXPECT_THAT(refusal(load_it, ErrorKind::kData), HasSubstr("does not match its hash in the manifest"));
  fs.remove_file(path + kTensors);
  EXPECT_THAT(refusal(load_it, ErrorKind::kData), HasSubstr("rank-0-of-1.safetensors is missing"));
  overwrite(fs, path + "/manifest.json", "{");
  EXPECT_THAT(refusal(load_it, ErrorKind::kData), HasSubstr("manifest.json"));
}

TEST(Load, ADestinationOfTheWrongSizeOrNameIsRefused) {
  MemoryFileSystem fs;
  save(fs, kDirectory, 2);
  std::vector<std::byte> bytes(23);
  const auto with = [&](const std::string& name) {
    return [&, name] {
      load_newest_valid(
          fs, kDirectory,
          [&](const TensorFile&) {
            return std::map<std::string, Destination>{{name, {bytes, {}}}};
          },
          nullptr);
    };
  };
  EXPECT_THAT(refusal(with("fc.weight"), ErrorKind::kInternal), HasSubstr("has 24 bytes, its destination 23"));
  EXPECT_THAT(refusal(with("fc.weigth"), ErrorKind::kData), HasSubstr("did you mean \"fc.weight\"?"));
}

// A checkpoint that does not fit because it is damaged is a damaged one; a sound one that does not fit is an error.
TEST(Load, ARefusalCountsOnlyOfASoundOne) {
  MemoryFileSystem fs;
  save(fs, kDirectory, 1);
  const std::string path = save(fs, kDirectory, 2) + kTensors, content = fs.read_file(path);
  Memory memory;
  const Place place = [&](const TensorFile& file) {
    if (file.manifest.step == 2) throw Error(ErrorKind::kData, file.path, "is of another model");
    return memory(file);
  };
  const auto load_it = [&] { load_newest_valid(fs, kDirectory, place, nullptr); };
  EXPECT_THAT(refusal(load_it, ErrorKind::kData), HasSubstr("is of another model"));
  std::string damaged = content;
  damaged.back() ^= 1;
  overwrite(fs, path, damaged);
  load_it();
  EXPECT_TRUE(memory.holds(TestState(1).arrays()));
}

TEST(Load, EndsAtOneOfALaterFormat) {
  MemoryFileSystem fs;
  save(fs, kDirectory, 1);
  overwrite(fs, save(fs, kDirectory, 2) + "/manifest.json", R"({"format": "skytrain-checkpoint", "version": 2})");
  Memory memory;
  std::vector<Candidate> skipped;
  EXPECT_FALSE(load_newest_valid(fs, kDirectory, memory.place(), &skipped));
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0].trouble, Candidate::Trouble::kTooNew);
  EXPECT_TRUE(memory.tensors.empty());
}

// A real disk, several pieces of which some lie in memory, and many small tensors in one piece.
class LoadFromDisk : public ::testing::Test {
 protected:
  LoadFromDisk() { fs_.remove_tree(folder_); }
  ~LoadFromDisk() override { fs_.remove_tree(folder_); }

  std::string save(uint64_t step, int64_t large) {
    std::vector<NamedArray> arrays;
    for (int i = 0; i < 40; ++i) arrays.push_back(like("small" + std::to_string(i), {i}));
    arrays.push_back(like("large", {large}));
    image_.lay_out(arrays, {});
    uint32_t value = static_cast<uint32_t>(step);
    expected_.clear();
    for (size_t i = 0; i < arrays.size(); ++i) {
      for (std::byte& byte : image_.array(i))
        byte = static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24);
      const auto bytes = image_.array(i);
      expected_[arrays[i].name].assign(bytes.begin(), bytes.end());
    }
    Manifest manifest;
    manifest.step = step;
    return commit_image(fs_, folder_, manifest, image_.file());
  }
  static NamedArray like(const std::string& name, std::vector<int64_t> shape) {
    NamedArray array;
    array.name = name;
    array.dtype = Dtype::kU8;
    array.shape = std::move(shape);
    return array;
  }

  FileSystem& fs_ = FileSystem::real();
  const std::string folder_ = ::testing::TempDir() + "load_test";
  FileImage image_;
  std::map<std::string, std::vector<std::byte>> expected_;  // of the last one that was saved
};

TEST_F(LoadFromDisk, GivesTheSameBytesWhetherTheyAreInMemoryOrNot) {
  const std::string path = save(5, (13 << 20) + 321);  // past the page cache
  for (const char* what : {"cold", "partly warm", "warm"}) {
    if (what == std::string("partly warm")) {
      std::vector<std::byte> some(3 << 20);
      fs_.read_range(path + kTensors, 4 << 20, some);
    }
    if (what == std::string("warm")) fs_.read_file(path + kTensors);
    Memory memory;
    EXPECT_EQ(load(fs_, path, memory.place()).step, 5u) << what;
    EXPECT_TRUE(memory.tensors == expected_) << what;
    for (const auto& [name, times] : memory.done) EXPECT_EQ(times, 1) << name;
  }
}

TEST_F(LoadFromDisk, DamageInAnyPageIsFoundAndNamed) {
  save(1, 1 << 20);
  const auto expected = expected_;
  const std::string path = save(2, (1 << 20) + 5) + kTensors, content = fs_.read_file(path);
  const Manifest manifest = read_manifest(fs_, folder_ + "/step-00000002");
  ASSERT_EQ(manifest.files[0].tensors.size(), 40u) << "hashes of all that have bytes";
  for (size_t page = 0; page * 4096 < content.size(); ++page) {
    std::string damaged = content;
    damaged[std::min(content.size() - 1, page * 4096 + page % 4096)] ^= 1;
    overwrite(fs_, path, damaged);
    Memory memory;
    std::vector<Candidate> skipped;
    const auto loaded = load_newest_valid(fs_, folder_, memory.place(), &skipped);
    ASSERT_TRUE(loaded) << page;
    ASSERT_EQ(loaded->manifest.step, 1u) << page;
    ASSERT_TRUE(memory.tensors == expected) << page;
    ASSERT_EQ(skipped.size(), 1u) << page;
    const bool in_large = page > 0 && (page + 1) * 4096 < content.size() - 4096;
    if (in_large) {
      ASSERT_THAT(skipped[0].reason, HasSubstr("damaged (tensor large), or")) << page;
    }
  }
}

}  // namespace
}  // namespace skytrain::checkpoint
