#include "skytrain/base/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "skytrain/base/error.h"

namespace skytrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An empty folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = testing::TempDir() + "skytrain-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void put(FileSystem& fs, const std::string& path, std::string_view text,
         FileSystem::Mode mode = FileSystem::Mode::kTruncate) {
  const auto file = fs.open_write(path, mode);
  file->append(text);
  file->sync();
  file->close();
}

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::kInternal, "", "");
}

// The contract, for the real disk and the fake one alike: a test that passes on the fake must mean something.
enum class Which { kReal, kMemory };
class AnyFileSystem : public testing::TestWithParam<Which> {
 protected:
  AnyFileSystem() {
    if (GetParam() == Which::kReal) {
      folder_.emplace();
      root_ = folder_->path();
    } else {
      memory_.emplace();
      root_ = "/disk";
      memory_->make_directories(root_);
    }
  }
  FileSystem& fs() { return memory_ ? *memory_ : FileSystem::real(); }
  std::string at(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::optional<TemporaryFolder> folder_;
  std::optional<MemoryFileSystem> memory_;
  std::string root_;
};
INSTANTIATE_TEST_SUITE_P(Both, AnyFileSystem, testing::Values(Which::kReal, Which::kMemory),
                         [](const auto& which) { return which.param == Which::kReal ? "Real" : "Memory"; });

TEST_P(AnyFileSystem, WritesAndReads) {
  put(fs(), at("a"), "hello");
  EXPECT_EQ(fs().read_file(at("a")), "hello");
  put(fs(), at("a"), "world", FileSystem::Mode::kAppend);
  EXPECT_EQ(fs().read_file(at("a")), "helloworld");
  put(fs(), at("a"), "new");
  EXPECT_EQ(fs().read_file(at("a")), "new");
  fs().truncate(at("a"), 1);
  EXPECT_EQ(fs().read_file(at("a")), "n");
  const std::string big(1 << 20, 'b');
  put(fs(), at("big"), big);
  EXPECT_EQ(fs().read_file(at("big")), big);
}

TEST_P(AnyFileSystem, StatTellsKindAndSize) {
  EXPECT_FALSE(fs().stat(at("none")));
  EXPECT_FALSE(fs().exists(at("none/below")));
  put(fs(), at("f"), "12345");
  EXPECT_FALSE(fs().exists(at("f/below"))) << "below a file there is nothing";
  fs().make_directories(at("d/e"));
  EXPECT_EQ(fs().stat(at("f"))->type, FileInfo::Type::kFile);
  EXPECT_EQ(fs().stat(at("f"))->size, 5u);
  EXPECT_EQ(fs().stat(at("d"))->type, FileInfo::Type::kDirectory);
}

TEST_P(AnyFileSystem, AnOpenFileIsReadAtAnyOffset) {
  std::string content(3 * 4096 + 10, 'x');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 4096);
  put(fs(), at("f"), content);
  const auto file = fs().open_read(at("f"));
  EXPECT_EQ(file->size(), content.size());
  std::string out(100, '\0');
  file->read(4090, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, content.substr(4090, 100));
  EXPECT_EQ(error_of([&] { file->read(content.size() - 99, std::as_writable_bytes(std::span(out))); }).kind(),
            ErrorKind::kData);

  alignas(4096) static std::array<std::byte, 4 * 4096> blocks;
  ASSERT_EQ(file->read_direct(4096, blocks), content.size() - 4096) << "fewer at the end of the file";
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(blocks.data()), content.size() - 4096),
            content.substr(4096));
  EXPECT_EQ(file->read_direct(4 * 4096, blocks), 0u);

  const std::span<const std::byte> mapped = file->map();
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(mapped.data()), mapped.size()), content);
  if (GetParam() == Which::kReal) {
    EXPECT_TRUE(file->is_in_memory(5000, 6000)) << "it was written a moment ago";
  }
  put(fs(), at("empty"), "");
  EXPECT_EQ(fs().open_read(at("empty"))->map().size(), 0u);
  EXPECT_EQ(error_of([&] { fs().open_read(at("none")); }).kind(), ErrorKind::kEnvironment);
}

TEST_P(AnyFileSystem, ReadRangeIsExact) {
  put(fs(), at("f"), "0123456789");
  std::array<std::byte, 4> out;
  fs().read_range(at("f"), 3, out);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), 4), "3456");
  const Error error = error_of([&] { fs().read_range(at("f"), 8, out); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.where(), at("f"));
  EXPECT_EQ(error.problem(), "is 10 bytes, expected at least 12");
  EXPECT_EQ(error_of([&] { fs().read_range(at("f"), 100, out); }).kind(), ErrorKind::kData);
}

TEST_P(AnyFileSystem, ListsSortedNames) {
  put(fs(), at("b"), "");
  put(fs(), at(".hidden"), "");
  fs().make_directories(at("a/nested"));
  EXPECT_THAT(fs().list(at("")), ElementsAre(".hidden", "a", "b"));
  EXPECT_THAT(error_of([&] { fs().list(at("none")); }).problem(), HasSubstr("No such file"));
}

TEST_P(AnyFileSystem, MakesDirectories) {
  fs().make_directories(at("x/y/z"));
  fs().make_directories(at("x/y/z"));
  EXPECT_FALSE(fs().make_directory(at("x")));
  EXPECT_TRUE(fs().make_directory(at("x/new")));
  EXPECT_THAT(error_of([&] { fs().make_directory(at("no/parent")); }).problem(), HasSubstr("No such file"));
  put(fs(), at("file"), "");
  EXPECT_EQ(error_of([&] { fs().make_directories(at("file/below")); }).kind(), ErrorKind::kEnvironment);
}

TEST_P(AnyFileSystem, ExclusiveOpenRefusesWhatExists) {
  put(fs(), at("f"), "1", FileSystem::Mode::kExclusive);
  const Error error = error_of([&] { fs().open_write(at("f"), FileSystem::Mode::kExclusive); });
  EXPECT_THAT(error.problem(), HasSubstr("File exists"));
  EXPECT_EQ(fs().read_file(at("f")), "1");
}

TEST_P(AnyFileSystem, RenameReplacesFilesAndKeepsFullFolders) {
  put(fs(), at("a"), "new");
  put(fs(), at("b"), "old");
  fs().rename(at("a"), at("b"));
  EXPECT_EQ(fs().read_file(at("b")), "new");
  EXPECT_FALSE(fs().exists(at("a")));
  fs().make_directories(at("d1/x"));
  fs().make_directories(at("d2/y"));
  EXPECT_THAT(error_of([&] { fs().rename(at("d1"), at("d2")); }).problem(), HasSubstr("not empty"));
  fs().rename(at("d1"), at("d3"));
  EXPECT_TRUE(fs().exists(at("d3/x")));
  EXPECT_THAT(error_of([&] { fs().rename(at("none"), at("b")); }).problem(), HasSubstr("No such file"));
}

TEST_P(AnyFileSystem, RemovesAndForgivesAbsence) {
  put(fs(), at("f"), "x");
  fs().remove_file(at("f"));
  fs().remove_file(at("f"));
  EXPECT_FALSE(fs().exists(at("f")));
  fs().make_directories(at("d/e"));
  put(fs(), at("d/e/f"), "x");
  fs().remove_tree(at("d"));
  fs().remove_tree(at("d"));
  EXPECT_FALSE(fs().exists(at("d")));
}

TEST_P(AnyFileSystem, ErrorsNamePathAndReason) {
  const Error error = error_of([&] { fs().read_file(at("none")); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.where(), at("none"));
  EXPECT_EQ(error.problem(), "cannot open: No such file or directory");
  EXPECT_FALSE(error.hint().empty());
  fs().make_directories(at("d"));
  EXPECT_THAT(error_of([&] { fs().read_file(at("d")); }).problem(), HasSubstr("Is a directory"));
}

TEST_P(AnyFileSystem, KnowsItsFreeSpace) { EXPECT_GT(fs().free_bytes(at("")), 0u); }

TEST(RealFileSystem, RemoveTreeDoesNotFollowLinks) {
  const TemporaryFolder outside, inside;
  put(FileSystem::real(), outside / "precious", "x");
  std::filesystem::create_directory_symlink(outside.path(), inside / "link");
  FileSystem::real().remove_tree(inside / "link");
  EXPECT_TRUE(FileSystem::real().exists(outside / "precious"));
  EXPECT_FALSE(FileSystem::real().exists(inside / "link"));
}

TEST(RealFileSystem, ReadsFilesWhoseSizeSaysNothing) {  // /proc says 0
  EXPECT_THAT(FileSystem::real().read_file("/proc/self/status"), HasSubstr("VmHWM"));
}

TEST(RealFileSystem, TellsAFullDisk) {
  const auto file = FileSystem::real().open_write("/dev/full", FileSystem::Mode::kAppend);
  const Error error = error_of([&] { file->append("x"); });
  EXPECT_EQ(error.message(),
            "/dev/full: cannot write: No space left on device\n"
            "  free some space, or choose a folder on another disk");
}

TEST(RealFileSystem, SyncsDirectories) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(FileSystem::real().sync_directory(folder.path()));
  EXPECT_THAT(error_of([&] { FileSystem::real().sync_directory(folder / "none"); }).problem(),
              HasSubstr("No such file"));
}

TEST(WriteFileAtomically, ReplacesOnTheRealDisk) {
  const TemporaryFolder folder;
  write_file_atomically(FileSystem::real(), folder / "f", "one");
  write_file_atomically(FileSystem::real(), folder / "f", "two");
  EXPECT_EQ(FileSystem::real().read_file(folder / "f"), "two");
  EXPECT_THAT(FileSystem::real().list(folder.path()), ElementsAre("f"));
}

}  // namespace
}  // namespace skytrain
