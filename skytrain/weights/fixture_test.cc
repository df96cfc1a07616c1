// Files that Python PyTorch wrote, and what it reads from them (tests/testdata/weights/make_weights.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/weights/weights.h"

namespace skytrain::weights {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kFolder = "tests/testdata/weights/";

Json expected() {
  return parse_json(FileSystem::real().read_file(kFolder + "expected.json"), kFolder + "expected.json");
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const int shift : {4, 0}) text += "0123456789abcdef"[static_cast<int>(byte) >> shift & 15];
  }
  return text;
}

TEST(WeightsFixture, AreReadAsPythonReadsThem) {
  int read = 0;
  const Json all = expected();
  for (const auto& [file, wanted] : all.items()) {
    if (!wanted.contains("arrays")) continue;
    SCOPED_TRACE(file);
    const Weights weights = read_weights(FileSystem::real(), kFolder + file);
    EXPECT_EQ(weights.format, file.starts_with("zip")      ? Format::kPtZip
                              : file.starts_with("legacy") ? Format::kPtLegacy
                                                           : Format::kSafetensors);
    EXPECT_EQ(weights.note, wanted["note"].get<std::string>());
    EXPECT_EQ(weights.ignored, wanted["ignored"].get<uint64_t>());
    ASSERT_EQ(weights.arrays.size(), wanted["arrays"].size());
    for (size_t i = 0; i < weights.arrays.size(); ++i) {
      const checkpoint::NamedArray& array = weights.arrays[i];
      const Json& other = wanted["arrays"][i];
      EXPECT_EQ(array.name, other[0].get<std::string>());
      EXPECT_EQ(checkpoint::dtype_name(array.dtype), other[1].get<std::string>()) << array.name;
      EXPECT_EQ(array.shape, other[2].get<std::vector<int64_t>>()) << array.name;
      EXPECT_EQ(hex(array.bytes), other[3].get<std::string>()) << array.name;
    }
    ++read;
  }
  EXPECT_EQ(read, 26);
}

TEST(WeightsFixture, AreRefusedByFileAndCause) {
  int refused = 0;
  const Json all = expected();
  for (const auto& [file, wanted] : all.items()) {
    if (!wanted.contains("refused")) continue;
    try {
      read_weights(FileSystem::real(), kFolder + file);
      ADD_FAILURE() << file << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_THAT(error.message(), StartsWith(kFolder + file + ": "));
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      for (const Json& words : wanted["refused"]) EXPECT_THAT(error.problem(), HasSubstr(words.get<std::string>()));
    }
    ++refused;
  }
  EXPECT_EQ(refused, 20);
}

TEST(WeightsFixture, TorchScriptIsRecognised) {
  EXPECT_TRUE(is_torchscript(FileSystem::real(), kFolder + "torchscript.pt"));
  const Json all = expected();
  for (const auto& [file, wanted] : all.items()) {
    EXPECT_EQ(is_torchscript(FileSystem::real(), kFolder + file), file == "torchscript.pt") << file;
  }
  EXPECT_FALSE(is_torchscript(FileSystem::real(), kFolder + "none.pt"));
  EXPECT_FALSE(is_torchscript(FileSystem::real(), kFolder));
}

// Nothing that is contiguous in the file is copied, and tied weights stay tied.
TEST(WeightsFixture, SharedStoragesShareBytes) {
  const Weights weights = read_weights(FileSystem::real(), kFolder + "zip_views.pt");
  const auto bytes = [&](const std::string& name) {
    for (const checkpoint::NamedArray& array : weights.arrays) {
      if (array.name == name) return array.bytes;
    }
    throw std::runtime_error(name);
  };
  EXPECT_EQ(bytes("tied_a").data(), bytes("tied_b").data());
  EXPECT_EQ(bytes("rows").data(), bytes("base").data() + 6 * 4);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes("base").data()) % 64, 0u);
}

}  // namespace
}  // namespace skytrain::weights
