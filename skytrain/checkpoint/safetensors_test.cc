#include "skytrain/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"

namespace skytrain::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string length_bytes(uint64_t n) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(n >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, 'x');
}

std::string write(std::span<const NamedArray> arrays, const std::map<std::string, std::string>& metadata = {}) {
  MemoryFileSystem fs;
  const auto out = fs.open_write("/f", FileSystem::Mode::kTruncate);
  const uint64_t written = write_safetensors(*out, arrays, metadata);
  out->close();
  std::string bytes = fs.read_file("/f");
  EXPECT_EQ(bytes.size(), written);
  return bytes;
}

SafetensorsHeader read(const std::string& bytes) {
  MemoryFileSystem fs;
  overwrite(fs, "/init.safetensors", bytes);
  return read_safetensors_header(fs, "/init.safetensors");
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_THAT(error.message(), HasSubstr("/init.safetensors: "));
    EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TestState state(3);
  const std::string bytes = write(state.arrays(), {{"format", "pt"}});
  const SafetensorsHeader header = read(bytes);
  EXPECT_EQ(header.file_bytes, bytes.size());
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(header.arrays.size(), state.arrays().size());
  for (const NamedArray& array : state.arrays()) {
    const ArrayInfo& info = header.arrays.at(array.name);
    EXPECT_EQ(info.dtype, array.dtype);
    EXPECT_EQ(info.shape, array.shape);
    ASSERT_EQ(info.end - info.begin, array.bytes.size());
    EXPECT_EQ(bytes.compare(info.begin, array.bytes.size(), reinterpret_cast<const char*>(array.bytes.data()),
                            array.bytes.size()),
              0);
  }
}

TEST(Safetensors, WidestDtypeComesFirstThenTheName) {  // so that every array is aligned for its dtype
  const TestState state(3);
  const SafetensorsHeader header = read(write(state.arrays()));
  const uint64_t data = header.arrays.at("optimizer.count").begin;
  EXPECT_EQ(data % 64, 0u);
  EXPECT_EQ(header.arrays.at("fc.weight").begin, data + 8);
  EXPECT_EQ(header.arrays.at("nothing").begin, data + 32);
  EXPECT_EQ(header.arrays.at("mask").begin, data + 32);
}

TEST(Safetensors, FileIsAFunctionOfItsContent) {
  const TestState state(3);
  std::vector<NamedArray> reversed(state.arrays().rbegin(), state.arrays().rend());
  EXPECT_EQ(write(state.arrays()), write(reversed));
}

TEST(Safetensors, EmptyFileHoldsNoArrays) { EXPECT_TRUE(read(write({})).arrays.empty()); }

TEST(Safetensors, EveryDtypeComesBack) {
  const std::string bytes(8, 'x');
  for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kI64, Dtype::kI32, Dtype::kI16,
                            Dtype::kI8, Dtype::kU8, Dtype::kBool}) {
    const NamedArray array{"a", dtype, {static_cast<int64_t>(8 / dtype_size(dtype))}, std::as_bytes(std::span(bytes))};
    EXPECT_EQ(read(write(std::span(&array, 1))).arrays.at("a").dtype, dtype) << dtype_name(dtype);
  }
}

TEST(Safetensors, LargeArraysAreWrittenInPieces) {
  const std::string bytes(9 << 20, 'y');
  const NamedArray array{"a", Dtype::kU8, {9 << 20}, std::as_bytes(std::span(bytes))};
  MemoryFileSystem fs;
  int appends = 0;
  fs.set_fault([&](std::string_view call, const std::string&) {
    appends += call == "append";
    return 0;
  });
  const auto out = fs.open_write("/f", FileSystem::Mode::kTruncate);
  write_safetensors(*out, std::span(&array, 1), {});
  EXPECT_GE(appends, 3);
  const SafetensorsHeader header = read_safetensors_header(fs, "/f");
  EXPECT_EQ(fs.read_file("/f").substr(header.arrays.at("a").begin), bytes);
}

TEST(Safetensors, WriterRefusesWhatNoReaderWouldTake) {
  const std::string bytes(8, 'x');
  const NamedArray good{"a", Dtype::kF32, {2}, std::as_bytes(std::span(bytes))};
  NamedArray wrong_size = good, reserved = good, latin1 = good;
  wrong_size.shape = {3};
  reserved.name = "__metadata__";
  latin1.name = "caf\xe9";
  const std::vector<std::vector<NamedArray>> refused = {{wrong_size}, {reserved}, {latin1}, {good, good}};
  for (const auto& arrays : refused) {
    try {
      write(arrays);
      ADD_FAILURE() << arrays[0].name << " was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    }
  }
}

// Weight files whose header lies were misread, or died with an error about something else.
TEST(Safetensors, LyingHeadersAreRefusedByFileTensorAndCause) {
  const auto w = [](const std::string& rest) { return "{\"w\":{" + rest + "}}"; };
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"F32","shape":[2],"data_offsets":[16,8])"), 32)),
              HasSubstr("tensor \"w\" begins at 16, after its end at 8"));
  EXPECT_THAT(refusal(file_of(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                              R"("w":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})",
                              32)),
              AllOf(HasSubstr("\"w\""), HasSubstr("twice")));
  EXPECT_THAT(refusal(length_bytes(1ull << 60) + "{}"),
              HasSubstr("header length 1152921504606846976 exceeds the file"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                              R"("b":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})",
                              32)),
              HasSubstr("tensor \"b\" leaves a hole of 8 bytes"));
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), 8)),
              AllOf(HasSubstr("tensor \"w\""), HasSubstr("negative dimension"), HasSubstr("-2")));
  EXPECT_THAT(refusal(file_of(R"({},"__metadata__":{"k":"v"}})", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(file_of("rubbish", 0)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(file_of("", 0)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[5],"data_offsets":[0,20]},)"
                              R"("b":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})",
                              32)),
              HasSubstr("tensor \"b\" overlaps tensor \"a\" by 4 bytes"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[16],"data_offsets":[0,64]}})", 32)),
              HasSubstr("tensor \"a\" ends at byte 64 of the data, past the end: the file holds 32"));
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"F32","shape":[9],"data_offsets":[0,32])"), 32)),
              HasSubstr("tensor \"w\" has 32 bytes, but F32 [9] needs 36"));
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0)),
              AllOf(HasSubstr("tensor \"w\""), HasSubstr("overflows")));
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,0])"), 0)),
              HasSubstr("too large"));
  EXPECT_THAT(refusal("abc"), HasSubstr("is 3 bytes, too short"));
  EXPECT_THAT(refusal(""), HasSubstr("is 0 bytes, too short"));
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"F32","shape":[8],"data_offsets":[0,32])"), 45)),
              HasSubstr("has 13 trailing bytes after its last tensor"));
  EXPECT_THAT(refusal(file_of("{}", 5)), HasSubstr("has 5 trailing bytes"));
  EXPECT_THAT(refusal(file_of(w(R"("dtype":"Q3","shape":[8],"data_offsets":[0,32])"), 32)),
              AllOf(HasSubstr("tensor \"w\" has unknown dtype \"Q3\""), HasSubstr("F64, F32")));
}

TEST(Safetensors, WrongJsonTypesAreRefused) {
  for (const char* entry :
       {"1", "[]", "null", R"({"shape":[8],"data_offsets":[0,32]})", R"({"dtype":"F32","data_offsets":[0,32]})",
        R"({"dtype":"F32","shape":[8]})", R"({"dtype":4,"shape":[8],"data_offsets":[0,32]})",
        R"({"dtype":"F32","shape":8,"data_offsets":[0,32]})", R"({"dtype":"F32","shape":[8.0],"data_offsets":[0,32]})",
        R"({"dtype":"F32","shape":["8"],"data_offsets":[0,32]})", R"({"dtype":"F32","shape":[8],"data_offsets":[0]})",
        R"({"dtype":"F32","shape":[8],"data_offsets":[0,32,64]})",
        R"({"dtype":"F32","shape":[8],"data_offsets":[-32,0]})",
        R"({"dtype":"F32","shape":[8],"data_offsets":[0,32.0]})",
        R"({"dtype":"F32","shape":[8],"data_offsets":[0,1e400]})"}) {
    refusal(file_of(std::string("{\"w\":") + entry + "}", 32));
  }
  EXPECT_THAT(refusal(file_of(R"({"__metadata__":{"k":1}})", 0)), HasSubstr("__metadata__ entry \"k\""));
  EXPECT_THAT(refusal(file_of(R"({"__metadata__":[]})", 0)), HasSubstr("__metadata__"));
  refusal(file_of(std::string("{\"w\":") + std::string(200, '[') + std::string(200, ']') + "}", 0));
}

TEST(Safetensors, HeaderBeyondTheFormatsLimitIsRefusedUnread) {
  // 101 MB of file, of which nothing but the length is real.
  EXPECT_THAT(refusal(length_bytes(100'000'001) + std::string(101'000'000, ' ')), HasSubstr("limit of 100000000"));
}

TEST(Safetensors, NoFileIsNamed) {
  MemoryFileSystem fs;
  try {
    read_safetensors_header(fs, "/none.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.message(), "/none.safetensors: no such file");
  }
}

TEST(Safetensors, MutatedFilesLoadOrAreRefused) {
  const uint32_t seed = 71;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string whole = write(TestState(3).arrays());
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = "0123456789{}[]\",:-"[random() % 18];
          break;
        case 2:
          bytes.resize(at + 1);
          break;
        default:
          bytes.insert(at, 1, static_cast<char>('0' + random() % 10));
          break;
      }
    }
    try {
      const SafetensorsHeader header = read(bytes);
      for (const auto& [name, info] : header.arrays) {
        ASSERT_LE(info.begin, info.end);
        ASSERT_LE(info.end, bytes.size());
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kData) << error.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace skytrain::checkpoint
