// Archives that lie, and those that we write.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "skytrain/weights/weights_test_data.h"
#include "skytrain/weights/zip_format.h"
#include "skytrain/weights/zip_reader.h"

namespace skytrain::weights {
namespace {

using namespace testing_data;  // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::HasSubstr;

// A good archive, made by hand so that each of its numbers can be made wrong.
struct Member {
  std::string name = "x/data.pkl", content = pickle::whole(pickle::dict({}));
  uint16_t flags = 0, method = 0;
  std::optional<uint32_t> crc = std::nullopt, size = std::nullopt, stored_size = std::nullopt,
                          at = std::nullopt;  // of the directory
  std::optional<std::string> local_name = std::nullopt;
  std::optional<uint32_t> local_size = std::nullopt, local_crc = std::nullopt;
  uint16_t local_flags = 0, local_method = 0;
  std::string extra = "", after = "";  // of the directory; after the content
};

struct End {
  std::optional<uint32_t> begin = std::nullopt, size = std::nullopt;
  std::optional<uint16_t> count = std::nullopt, comment = std::nullopt;
  uint16_t disk = 0;
  std::string before = "", text = "";  // between directory and end record; after it
};

uint32_t crc_of(const std::string& content) {
  const std::string made = zip_of({{"x", content}});
  return load_le<uint32_t>(reinterpret_cast<const std::byte*>(made.data()) + 14);
}

std::string by_hand(const std::vector<Member>& members, const End& end = {}) {
  std::string out, directory;
  for (const Member& member : members) {
    const auto at = static_cast<uint32_t>(out.size());
    const auto size = static_cast<uint32_t>(member.content.size());
    const std::string& local_name = member.local_name ? *member.local_name : member.name;
    append_le<uint32_t>(out, zip::kLocalHeader);
    for (const uint16_t value : {uint16_t{20}, member.local_flags, member.local_method, uint16_t{0}, uint16_t{0}}) {
      append_le<uint16_t>(out, value);
    }
    append_le<uint32_t>(out, member.local_crc.value_or(crc_of(member.content)));
    append_le<uint32_t>(out, member.local_size.value_or(size));
    append_le<uint32_t>(out, member.local_size.value_or(size));
    append_le<uint16_t>(out, static_cast<uint16_t>(local_name.size()));
    append_le<uint16_t>(out, 0);
    out += local_name + member.content + member.after;

    append_le<uint32_t>(directory, zip::kCentralHeader);
    for (const uint16_t value : {uint16_t{20}, uint16_t{20}, member.flags, member.method, uint16_t{0}, uint16_t{0}}) {
      append_le<uint16_t>(directory, value);
    }
    append_le<uint32_t>(directory, member.crc.value_or(crc_of(member.content)));
    append_le<uint32_t>(directory, member.stored_size.value_or(member.size.value_or(size)));
    append_le<uint32_t>(directory, member.size.value_or(size));
    append_le<uint16_t>(directory, static_cast<uint16_t>(member.name.size()));
    append_le<uint16_t>(directory, static_cast<uint16_t>(member.extra.size()));
    directory.append(10, '\0');
    append_le<uint32_t>(directory, member.at.value_or(at));
    directory += member.name + member.extra;
  }
  const auto begin = static_cast<uint32_t>(out.size());
  out += directory + end.before;
  const auto count = static_cast<uint16_t>(members.size());
  append_le<uint32_t>(out, zip::kEnd);
  for (const uint16_t value : {end.disk, uint16_t{0}, end.count.value_or(count), end.count.value_or(count)}) {
    append_le<uint16_t>(out, value);
  }
  append_le<uint32_t>(out, end.size.value_or(static_cast<uint32_t>(directory.size())));
  append_le<uint32_t>(out, end.begin.value_or(begin));
  append_le<uint16_t>(out, end.comment.value_or(static_cast<uint16_t>(end.text.size())));
  return out + end.text;
}

TEST(Zip, MadeByHandIsRead) {
  EXPECT_TRUE(read(by_hand({{}})).arrays.empty());
  EXPECT_TRUE(read(by_hand({{}}, {.text = "a comment"})).arrays.empty());
}

TEST(Zip, NamesThatLeadElsewhereAreRefused) {
  const std::pair<std::string, const char*> names[] = {
      {"../x/data.pkl", "leads out of its folder"}, {"x/../../data.pkl", "leads out of its folder"},
      {"x/..", "leads out of its folder"},          {"/etc/passwd", "an absolute path"},
      {"x\\data.pkl", "with a backslash"},          {std::string("x/data.pkl\0y", 12), "with a zero byte"},
  };
  for (const auto& [name, words] : names) {
    EXPECT_THAT(refusal(by_hand({{}, {.name = name}})), AllOf(HasSubstr("has a member named"), HasSubstr(words)));
  }
  EXPECT_THAT(refusal(by_hand({{}, {.name = ""}})), HasSubstr("a member without a name"));
}

TEST(Zip, MembersThatLieAreRefused) {
  EXPECT_THAT(refusal(by_hand({{}, {}})), HasSubstr("two members named \"x/data.pkl\""));
  EXPECT_THAT(refusal(by_hand({{}, {.name = "x/two", .at = 0}})), HasSubstr("members that overlap"));
  EXPECT_THAT(refusal(by_hand({{.after = "PK"}, {.name = "x/two", .at = 20}})), HasSubstr("members that overlap"));
  EXPECT_THAT(refusal(by_hand({{.method = 8, .local_method = 8}})),
              HasSubstr("a compressed member, \"x/data.pkl\" (method 8)"));
  EXPECT_THAT(refusal(by_hand({{.method = 8}})), HasSubstr("another way of compression in its own header"));
  EXPECT_THAT(refusal(by_hand({{.flags = 1, .local_flags = 1}})), HasSubstr("an encrypted member"));
  EXPECT_THAT(refusal(by_hand({{.local_flags = 1}})), HasSubstr("other flags in its own header"));
  EXPECT_THAT(refusal(by_hand({{.crc = 7, .local_crc = 7}})), HasSubstr("\"x/data.pkl\" does not match its CRC-32"));
  EXPECT_THAT(refusal(by_hand({{.crc = 7}})), HasSubstr("another CRC in its own header"));
  EXPECT_THAT(refusal(by_hand({{.size = 1}})), HasSubstr("another size in its own header"));
  EXPECT_THAT(refusal(by_hand({{.size = 4000, .local_size = 4000}})), HasSubstr("past the end of the file's data"));
  EXPECT_THAT(refusal(by_hand({{.size = 30, .local_size = 30}})), HasSubstr("content that reaches past"));
  EXPECT_THAT(refusal(by_hand({{.size = 1, .stored_size = 5}})), HasSubstr("is 1 bytes and takes 5"));
  EXPECT_THAT(refusal(by_hand({{.at = 0x7FFFFFFF}})), HasSubstr("past the end of the file's data"));
  EXPECT_THAT(refusal(by_hand({{.at = 1}})), HasSubstr("no header of its own"));
  EXPECT_THAT(refusal(by_hand({{.at = 50}})), HasSubstr("past the end of the file's data"));
  EXPECT_THAT(refusal(by_hand({{.local_name = "y/data.pkl"}})), HasSubstr("another name in its own header"));
  EXPECT_THAT(refusal(by_hand({{.local_name = std::string(60'000, 'x')}})), HasSubstr("another name"));
  EXPECT_THAT(refusal(by_hand({{.flags = 8, .local_flags = 8}})), HasSubstr("no descriptor after its content"));
  EXPECT_THAT(refusal(by_hand({{.flags = 8}})), HasSubstr("other flags in its own header"));
  EXPECT_THAT(refusal(by_hand({{.size = 0xFFFFFFFF, .local_size = 0xFFFFFFFF}})), HasSubstr("no zip64 field"));
  EXPECT_THAT(refusal(by_hand({{.at = 0xFFFFFFFF, .extra = std::string("\1\0\4\0abcd", 8)}})),
              HasSubstr("a zip64 field that is too short"));
  EXPECT_THAT(refusal(by_hand({{.at = 0xFFFFFFFF, .extra = std::string("\1\0\x40\0abcd", 8)}})),
              HasSubstr("no zip64 field"));
  EXPECT_THAT(refusal(by_hand({{.at = 0xFFFFFFFF, .extra = std::string("\1\0\10\0", 4) + std::string(8, '\xff')}})),
              HasSubstr("past the end of the file's data"));
}

TEST(Zip, DescriptorsMustAgree) {
  const Member plain;
  const auto descriptor = [&](uint32_t crc, uint64_t size, bool wide) {
    std::string out;
    append_le<uint32_t>(out, zip::kDataDescriptor);
    append_le<uint32_t>(out, crc);
    for (int i = 0; i < 2; ++i) {
      if (wide) {
        append_le<uint64_t>(out, size);
      } else {
        append_le<uint32_t>(out, static_cast<uint32_t>(size));
      }
    }
    return out;
  };
  const auto with = [&](const std::string& after) {
    return by_hand({{.flags = 8, .local_size = 0, .local_crc = 0, .local_flags = 8, .after = after}});
  };
  const uint32_t crc = crc_of(plain.content);
  const uint64_t size = plain.content.size();
  EXPECT_TRUE(read(with(descriptor(crc, size, false))).arrays.empty());
  EXPECT_TRUE(read(with(descriptor(crc, size, true))).arrays.empty());
  EXPECT_THAT(refusal(with(descriptor(crc + 1, size, false))), HasSubstr("another CRC after its content"));
  EXPECT_THAT(refusal(with(descriptor(crc, size + 1, false))), HasSubstr("another size after its content"));
  EXPECT_THAT(refusal(with(descriptor(crc, size + 1, true))), HasSubstr("another size after its content"));
}

TEST(Zip, DirectoriesThatLieAreRefused) {
  EXPECT_THAT(refusal(by_hand({{}}, {.count = 2})), HasSubstr("can't list 2 members"));
  EXPECT_THAT(refusal(by_hand({{}, {.name = "y"}}, {.count = 1})), HasSubstr("bytes after its last entry"));
  EXPECT_THAT(refusal(by_hand({{}}, {.count = 0xFFFF})), HasSubstr("can't list 65535 members"));
  EXPECT_THAT(refusal(by_hand({{}}, {.begin = 3})), HasSubstr("its directory should be"));
  EXPECT_THAT(refusal(by_hand({{}}, {.begin = 0xFFFFFFFF})), HasSubstr("its directory should be"));
  EXPECT_THAT(refusal(by_hand({{}}, {.size = 0xFFFFFFFF})), HasSubstr("its directory should be"));
  EXPECT_THAT(refusal(by_hand({{}}, {.before = "hole"})), HasSubstr("its directory should be"));
  EXPECT_THAT(refusal(by_hand({{}}, {.disk = 1})), HasSubstr("one part of a zip archive in several files"));
  EXPECT_THAT(refusal(by_hand({{}}, {.comment = 9})), HasSubstr("0 bytes after its end, where its comment takes 9"));
  EXPECT_THAT(refusal(by_hand({{}}, {.comment = 0, .text = "trailing"})), HasSubstr("8 bytes after its end"));
  EXPECT_THAT(refusal(by_hand({{}}) + std::string(70'000, 'x')), HasSubstr("a zip archive without its end"));
  EXPECT_THAT(refusal(by_hand({})), HasSubstr("is a zip archive of 0 members"));
  EXPECT_THAT(refusal(by_hand({{.name = "data.pkl"}})), HasSubstr("none is <name>/data.pkl"));
  EXPECT_THAT(refusal(by_hand({{.name = "x/y/data.pkl"}})), HasSubstr("none is <name>/data.pkl"));
  EXPECT_THAT(refusal(by_hand({{}, {.name = "y/data.pkl"}})), HasSubstr("holds two pickles"));
  EXPECT_THAT(refusal(by_hand({{}, {.name = "x/byteorder", .content = "big"}})), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(by_hand({{}, {.name = "x/byteorder", .content = "middle"}})), HasSubstr("byte order \"middle\""));
  EXPECT_THAT(refusal(by_hand({{}, {.name = "x/code/x.py"}})), HasSubstr("TorchScript"));
}

TEST(Zip, EveryTruncationIsRefused) {
  const std::string whole =
      zip_of({{"x/data.pkl", pickle::whole(pickle::dict({{"w", pickle::floats()}}))}, {"x/data/0", kSixFloats}});
  ASSERT_EQ(read(whole).arrays.size(), 1u);
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    ASSERT_FALSE(refusal(whole.substr(0, size)).empty());
  }
}

// Every bit that is flipped in what is read is found, wherever it is: in headers, in names or by the CRC.
TEST(Zip, EveryFlippedBitOfWeightsIsFound) {
  const std::string whole =
      zip_of({{"x/data.pkl", pickle::whole(pickle::dict({{"w", pickle::floats()}}))}, {"x/data/0", kSixFloats}});
  int read_alike = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    try {
      const Weights weights = read(bytes);
      ASSERT_EQ(weights.arrays.size(), 1u) << bit;
      ASSERT_EQ(as_text(weights.arrays[0].bytes), kSixFloats) << bit;
      ++read_alike;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kData);
    }
  }
  // Times, versions, padding.
  EXPECT_LT(read_alike, static_cast<int>(whole.size() * 8 / 2));
}

TEST(ZipWriter, ContentIsAlignedAndComesBack) {
  const Members members = {
      {"a/data.pkl", "abc"}, {"a/empty", ""}, {"a/long name with \xc3\xa4", std::string(1000, 'x')}};
  for (const ZipWriter::Options options :
       {ZipWriter::Options{}, ZipWriter::Options{.zip64_from = 0, .zip64_members_from = 0},
        ZipWriter::Options{.zip64_from = 100}}) {
    const std::string bytes = zip_of(members, options);
    const std::string path = "/zip";
    const Refusal refuse(path);
    const ZipReader reader(std::as_bytes(std::span(bytes)), refuse);
    ASSERT_EQ(reader.members().size(), members.size());
    for (const auto& [name, content] : members) {
      const ZipMember* const member = reader.find(name);
      ASSERT_NE(member, nullptr) << name;
      EXPECT_EQ(as_text(reader.content(*member)), content);
      EXPECT_EQ(member->data_at % 64, 0u);
    }
    EXPECT_EQ(reader.find("a/none"), nullptr);
  }
}

// Keeps the small pieces and counts the large ones.
class HeadersOnly final : public WritableFile {
 public:
  void append(std::span<const std::byte> bytes) override {
    if (bytes.size() < 4096) headers += as_text(bytes);
    written += bytes.size();
  }
  void sync() override {}
  void close() override {}
  std::string headers;
  uint64_t written = 0;
};

TEST(ZipWriter, MembersBeyond4GiBUseZip64) {
  constexpr uint64_t kSize = (uint64_t{4} << 30) + 4096;
  // Pages that nobody wrote to take no memory.
  void* const memory = mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, kSize, MADV_HUGEPAGE);  // fewer page faults, where there are huge pages
  HeadersOnly out;
  ZipWriter writer(out);
  writer.add("big", std::span(static_cast<const std::byte*>(memory), kSize));
  writer.add("after", "abc");
  EXPECT_EQ(writer.finish(), out.written);
  munmap(memory, kSize);
  const auto number = [&](size_t at, auto type) {
    return uint64_t{load_le<decltype(type)>(reinterpret_cast<const std::byte*>(out.headers.data()) + at)};
  };
  EXPECT_EQ(number(18, uint32_t{}), zip::kIn64);
  EXPECT_EQ(number(30 + 3, uint16_t{}), zip::kExtraZip64);
  EXPECT_EQ(number(30 + 3 + 4, uint64_t{}), kSize);
  // The directory, behind both local headers: the size of the one and the place of the other are in zip64 fields.
  const std::string_view tail(out.headers);
  const std::string path = "/zip";
  const Refusal refuse(path);
  const ZipDirectoryPlace place = locate_zip_directory(std::as_bytes(std::span(tail)), out.written, refuse);
  ASSERT_EQ(place.count, 2u);
  const std::string_view directory = tail.substr(tail.size() - (out.written - place.begin), place.size);
  const auto members = parse_zip_directory(std::as_bytes(std::span(directory)), place, refuse);
  EXPECT_EQ(members[0].size, kSize);
  EXPECT_EQ(members[1].name, "after");
  EXPECT_EQ(members[1].size, 3u);
  EXPECT_GT(members[1].header_at, kSize);
}

}  // namespace
}  // namespace skytrain::weights
