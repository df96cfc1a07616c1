#include <cstring>

#include "skytrain/weights/weights_test_data.h"
#include "skytrain/weights/zip_reader.h"

namespace skytrain::weights {
namespace {

using namespace testing_data;  // NOLINT(google-build-using-namespace)
using checkpoint::Dtype;
using checkpoint::NamedArray;

std::string written(std::span<const NamedArray> arrays) {
  MemoryFileSystem fs;
  const auto file = fs.open_write("/f", FileSystem::Mode::kTruncate);
  const uint64_t size = write_pt(*file, arrays);
  std::string bytes = fs.read_file("/f");
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

// Arrays of every dtype in several shapes, with bytes of their own.
class State {
 public:
  State() {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
    const std::vector<std::vector<int64_t>> shapes = {{}, {6}, {2, 3}, {1, 2, 1, 3}, {0}, {3, 0, 2}};
    for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kI64, Dtype::kI32,
                              Dtype::kI16, Dtype::kI8, Dtype::kU8, Dtype::kBool}) {
      for (const std::vector<int64_t>& shape : shapes) {
        size_t size = checkpoint::dtype_size(dtype);
        for (const int64_t extent : shape) size *= static_cast<size_t>(extent);
        const auto all = std::as_bytes(std::span(bytes_));
        arrays_.push_back({str("array.", arrays_.size()), dtype, shape, all.subspan(arrays_.size(), size)});
      }
    }
  }
  const std::vector<NamedArray>& arrays() const { return arrays_; }

 private:
  std::string bytes_ = std::string(200, '\0');
  std::vector<NamedArray> arrays_;
};

TEST(WritePt, EveryDtypeAndShapeIsReadBack) {
  const State state;
  const Weights weights = read(written(state.arrays()));
  EXPECT_EQ(weights.format, Format::kPtZip);
  ASSERT_EQ(weights.arrays.size(), state.arrays().size());
  for (size_t i = 0; i < weights.arrays.size(); ++i) {
    const NamedArray &got = weights.arrays[i], &put = state.arrays()[i];
    EXPECT_EQ(got.name, put.name);
    EXPECT_EQ(got.dtype, put.dtype);
    EXPECT_EQ(got.shape, put.shape);
    EXPECT_EQ(as_text(got.bytes), as_text(put.bytes));
  }
}

TEST(WritePt, FileIsAFunctionOfItsContent) {
  const State one, two;
  EXPECT_EQ(written(one.arrays()), written(two.arrays()));
}

TEST(WritePt, TiedArraysShareAStorage) {
  const std::string bytes(4096, 'b');
  const auto span = std::as_bytes(std::span(bytes));
  const std::vector<NamedArray> tied = {{"a", Dtype::kF32, {1024}, span}, {"b", Dtype::kF32, {32, 32}, span}};
  const std::string file = written(tied);
  EXPECT_LT(file.size(), 6000u);
  const Weights weights = read(file);
  EXPECT_EQ(weights.arrays[0].bytes.data(), weights.arrays[1].bytes.data());
  // As another dtype they are another storage: PyTorch refuses a storage of two dtypes.
  const std::vector<NamedArray> cast = {{"a", Dtype::kF32, {1024}, span}, {"b", Dtype::kI32, {1024}, span}};
  EXPECT_GT(written(cast).size(), 8192u);
}

TEST(WritePt, TensorsAreAlignedAndWrittenInPieces) {
  const std::string bytes(9 << 20, 'y');
  const NamedArray array{"a", Dtype::kU8, {9 << 20}, std::as_bytes(std::span(bytes))};
  MemoryFileSystem fs;
  int appends = 0;
  fs.set_fault([&](std::string_view call, const std::string&) {
    appends += call == "append";
    return 0;
  });
  const auto file = fs.open_write("/f", FileSystem::Mode::kTruncate);
  const AllocationMeter meter;
  write_pt(*file, std::span(&array, 1));
  EXPECT_GE(appends, 3);
  // The file in memory grows by copies of itself; the writer adds little.
  EXPECT_LT(meter.peak_bytes(), size_t{3} * (9 << 20));
  const Weights weights = read_weights(fs, "/f");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights.arrays[0].bytes.data()) % 64, 0u);
}

TEST(WritePt, RefusesWhatNoReaderWouldTake) {
  const std::string bytes(8, 'x');
  const NamedArray good{"a", Dtype::kF32, {2}, std::as_bytes(std::span(bytes))};
  NamedArray wrong_size = good, negative = good, huge = good, latin1 = good;
  wrong_size.shape = {3};
  negative.shape = {-2};
  huge.shape = {0, int64_t{1} << 62, 8};
  latin1.name = "caf\xe9";
  const std::vector<std::vector<NamedArray>> refused = {{wrong_size}, {negative}, {huge}, {latin1}, {good, good}};
  for (const auto& arrays : refused) {
    try {
      written(arrays);
      ADD_FAILURE() << arrays[0].name << " was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal) << error.message();
    }
  }
}

TEST(WritePt, AFullDiskIsReported) {
  const State state;
  MemoryFileSystem fs;
  fs.set_capacity(500);
  const auto file = fs.open_write("/f", FileSystem::Mode::kTruncate);
  try {
    write_pt(*file, state.arrays());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  }
}

}  // namespace
}  // namespace skytrain::weights
