#include "skytrain/checkpoint/file_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {
namespace {

NamedArray like(const std::string& name, Dtype dtype, std::vector<int64_t> shape) {
  NamedArray array;
  array.name = name;
  array.dtype = dtype;
  array.shape = std::move(shape);
  return array;
}

void put(const FileImage& image, size_t index, const std::string& bytes) {
  ASSERT_EQ(image.array(index).size(), bytes.size());
  std::memcpy(image.array(index).data(), bytes.data(), bytes.size());
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(FileImage, IsAFileThatLoads) {
  MemoryFileSystem fs;
  FileImage image;
  const std::vector<NamedArray> arrays = {like("b", Dtype::kU8, {3}), like("a", Dtype::kF32, {2, 1}),
                                          like("empty", Dtype::kF32, {0})};
  image.lay_out(arrays, {{"step", "7"}});
  put(image, 0, "xyz");
  put(image, 1, "12345678");
  const SafetensorsHeader header = parse_safetensors_header(text(image.file()), image.file().size(), "image");
  EXPECT_EQ(header.arrays.at("a").begin % 4096, 0u);
  EXPECT_EQ(header.metadata.at("step"), "7");

  Manifest manifest;
  manifest.step = 7;
  const std::string path = commit_image(fs, "/run/checkpoints", manifest, image.file());
  EXPECT_EQ(path, "/run/checkpoints/step-00000007");
  const Manifest read = read_manifest(fs, path);
  const LoadedFile file = load_file(fs, path, read.files.at(0));
  EXPECT_EQ(text(file.bytes("a")), "12345678");
  EXPECT_EQ(text(file.bytes("b")), "xyz");
  EXPECT_EQ(file.bytes("empty").size(), 0u);
}

TEST(FileImage, IsUsedAgainForMoreAndForLess) {
  FileImage image;
  for (const int64_t size : {10, 1'000'000, 3}) {
    image.lay_out(std::vector{like("a", Dtype::kU8, {size})}, {});
    put(image, 0, std::string(static_cast<size_t>(size), char('a' + size % 20)));
    const SafetensorsHeader header = parse_safetensors_header(text(image.file()), image.file().size(), "image");
    EXPECT_EQ(header.arrays.at("a").end - header.arrays.at("a").begin, static_cast<uint64_t>(size));
  }
}

TEST(FileImage, ANameThatComesTwiceIsRefused) {
  FileImage image;
  EXPECT_THROW(image.lay_out(std::vector{like("a", Dtype::kU8, {1}), like("a", Dtype::kU8, {1})}, {}), Error);
}

// Large files are hashed by another thread and go past the page cache where the disk takes that.
TEST(FileImage, OfManyMegabytesIsWrittenWholeToARealDisk) {
  FileSystem& fs = FileSystem::real();
  const std::string folder = ::testing::TempDir() + "file_image_test";
  fs.remove_tree(folder);
  FileImage image;
  const size_t size = (20 << 20) + 123;
  image.lay_out(std::vector{like("a", Dtype::kU8, {static_cast<int64_t>(size)})}, {});
  uint32_t value = 1;
  for (std::byte& byte : image.array(0)) byte = static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24);
  Manifest manifest;
  manifest.step = 1;
  const std::string path = commit_image(fs, folder, manifest, image.file());
  const LoadedFile file = load_file(fs, path, read_manifest(fs, path).files.at(0));
  EXPECT_TRUE(std::ranges::equal(file.bytes("a"), image.array(0)));
  fs.remove_tree(folder);
}

}  // namespace
}  // namespace skytrain::checkpoint
