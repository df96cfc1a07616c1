#include "skytrain/base/scratch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "skytrain/base/error.h"

namespace skytrain {
namespace {

TEST(ScratchFile, KeepsWhatWasWrittenAndHasNoName) {
  const std::string folder = testing::TempDir() + "skytrain-scratch-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  {
    ScratchFile file({"", "/nonexistent", folder}, 100);
    EXPECT_EQ(file.folder(), folder);
    const std::string text = "0123456789";
    file.write(1000, std::as_bytes(std::span(text.data(), 10)));
    std::string read(4, ' ');
    file.read(1003, std::as_writable_bytes(std::span(read.data(), 4)));
    EXPECT_EQ(read, "3456");
    EXPECT_THROW(file.read(5000, std::as_writable_bytes(std::span(read.data(), 4))), Error);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove_all(folder);
}

TEST(ScratchFile, SaysWhatIsMissing) {
  try {
    ScratchFile({testing::TempDir()}, uint64_t{1} << 62);
    ADD_FAILURE() << "was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.message(), testing::AllOf(testing::HasSubstr(" free, "), testing::HasSubstr("TMPDIR")));
  }
  EXPECT_THROW(ScratchFile({"/nonexistent"}, 1), Error);
}

}  // namespace
}  // namespace skytrain
