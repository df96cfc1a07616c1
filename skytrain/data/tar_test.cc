#include "skytrain/data/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/tar_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "name=content" of each file.
std::vector<std::string> files_of(const std::string& bytes) {
  MemoryFileSystem fs;
  put_file(fs, "/x.tar", bytes);
  FileSource tar(fs, "/x.tar", bytes.size());
  std::vector<std::string> files;
  uint64_t offset = 0;
  while (const auto member = read_tar_member(tar, offset, "x.tar")) {
    if (member->type == TarMember::Type::kFile) {
      const auto content = tar.bytes(member->data, static_cast<size_t>(member->size));
      files.push_back(member->name + "=" + std::string(content.begin(), content.end()));
    }
    offset = member->next;
  }
  check_tar_end(tar, offset, "x.tar");
  return files;
}

std::string refusal(const std::string& bytes) {
  try {
    files_of(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.message();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

TEST(Tar, MembersComeInOrderWithTheirContent) {
  const std::string big(20000, 'b');
  EXPECT_THAT(files_of(tar_of({{"a", "1"}, {"d/b", big}, {"empty", ""}, {"c", std::string(512, 'c')}})),
              ElementsAre("a=1", "d/b=" + big, "empty=", "c=" + std::string(512, 'c')));
}

TEST(Tar, LongNamesOfGnuAndOfPax) {
  const std::string name = std::string(150, 'n') + "/x.png";
  EXPECT_THAT(
      files_of(tar_special('L', name + '\0') + tar_member("short", "1") +
               tar_special('x', pax_record("mtime", "1.5") + pax_record("path", name)) + tar_member("short", "2") +
               tar_special('g', pax_record("comment", "0123")) + tar_member("short", "3") + tar_end()),
      ElementsAre(name + "=1", name + "=2", "short=3"));
}

TEST(Tar, PrefixOfUstar) {
  std::string member = tar_member("x", "1");
  member.replace(345, 5, "a/b/c");
  correct_checksum(member);
  EXPECT_THAT(files_of(member + tar_end()), ElementsAre("a/b/c/x=1"));
  member.replace(257, 8, std::string_view("ustar  \0", 8));  // of GNU tar, which keeps other things there
  correct_checksum(member);
  EXPECT_THAT(files_of(member + tar_end()), ElementsAre("x=1"));
}

TEST(Tar, SizesInBase256AndInPax) {
  std::string member = tar_member("x", "12345");
  member.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  correct_checksum(member);
  EXPECT_THAT(files_of(member + tar_end()), ElementsAre("x=12345"));
  member.replace(124, 12, "00000000000 ");
  correct_checksum(member);
  EXPECT_THAT(files_of(tar_special('x', pax_record("size", "5")) + member + tar_end()), ElementsAre("x=12345"));
  member.replace(124, 12, std::string(12, '\xff'));  // -1
  correct_checksum(member);
  EXPECT_THAT(refusal(tar_member("a", "1") + member + tar_end()), HasSubstr("no header of a tar archive at byte 1024"));
}

TEST(Tar, FoldersAndLinksHaveNoContent) {
  std::string folder = tar_header("d", 7000);  // what some writers put there
  folder[156] = '5';
  correct_checksum(folder);
  EXPECT_THAT(
      files_of(folder + tar_header("old/", 0) + tar_special('2', "", "link") + tar_member("a", "1") + tar_end()),
      ElementsAre("a=1"));
}

TEST(Tar, WhatIsCutIsRefused) {
  const std::string whole = tar_of({{"a", "1"}, {"b", std::string(3000, 'b')}});
  EXPECT_THAT(refusal(whole.substr(0, 3000)),
              AllOf(HasSubstr("x.tar: is cut short: b has 3000 bytes from byte 1536"), HasSubstr("ends at byte 3000")));
  EXPECT_THAT(refusal(whole.substr(0, 1024)), HasSubstr("ends at byte 1024 without the end mark"));
  EXPECT_THAT(refusal(whole.substr(0, 1300)), HasSubstr("without the end mark"));
  EXPECT_THAT(refusal(tar_special('L', "name") + tar_end()), HasSubstr("no file follows the header at byte 0"));
  EXPECT_THAT(refusal(tar_special('L', "name").substr(0, 514)), HasSubstr("cut short"));
}

TEST(Tar, WhatIsNoTarIsNamed) {
  EXPECT_THAT(refusal(""), HasSubstr("is no tar archive: it is empty"));
  EXPECT_THAT(refusal("<!DOCTYPE html><html>"), HasSubstr("it looks like HTML"));
  EXPECT_THAT(refusal("\x1f\x8b\x08" + std::string(600, 'x')), HasSubstr("is gzip: compressed archives"));
  std::string damaged = tar_of({{"a", "1"}, {"b", "2"}});
  damaged[1024] ^= 1;
  EXPECT_THAT(refusal(damaged), HasSubstr("is damaged: there is no header of a tar archive at byte 1024"));
}

TEST(Tar, SparseFilesAndConcatenatedArchivesAreRefused) {
  EXPECT_THAT(refusal(tar_special('S', "x") + tar_end()), HasSubstr("sparse file at byte 0"));
  EXPECT_THAT(refusal(tar_special('x', pax_record("GNU.sparse.major", "1")) + tar_member("x", "") + tar_end()),
              HasSubstr("sparse file"));
  EXPECT_THAT(refusal(tar_of({{"a", "1"}}) + tar_of({{"b", "2"}})),
              HasSubstr("goes on after its end mark at byte 1024"));
}

TEST(Tar, DamagedPaxIsRefused) {
  for (const std::string records :
       {"9999 path=x\n", "0 path=x\n", "x", "12 path=abcde", "11 pathabcd\n", "7 path=", "9 size=x\n", "8 path=\n"}) {
    EXPECT_THAT(refusal(tar_special('x', records) + tar_member("x", "") + tar_end()), HasSubstr("damaged pax header"))
        << records;
  }
}

TEST(Tar, EveryCutIsAnError) {
  const std::string whole = tar_special('x', pax_record("path", "long")) + tar_of({{"a", "1"}, {"b", "22"}});
  for (size_t size = 0; size + 2 * kTarBlock < whole.size(); ++size) refusal(whole.substr(0, size));
}

TEST(FileSource, GivesTheSameBytesWhateverTheOrder) {
  MemoryFileSystem fs;
  std::string content;
  for (int i = 0; i < 100000; ++i) content += static_cast<char>(i * 7 % 251);
  put_file(fs, "/x", content);
  FileSource source(fs, "/x", content.size());
  for (const uint64_t offset : {0, 4000, 4090, 5000, 90000, 10, 99990, 20000, 20010, 24096, 40000, 50000}) {
    const auto bytes = source.bytes(offset, 10);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), content.substr(offset, 10)) << offset;
  }
  EXPECT_EQ(source.bytes(0, content.size()).size(), content.size());
  EXPECT_TRUE(source.bytes(content.size(), 0).empty());
}

}  // namespace
}  // namespace skytrain::data
