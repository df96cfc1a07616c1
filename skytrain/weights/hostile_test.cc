// Files whose tensors, storages or containers lie.

#include <random>

#include "skytrain/weights/weights_test_data.h"

namespace skytrain::weights {
namespace {

using namespace testing_data;  // NOLINT(google-build-using-namespace)
using namespace pickle;        // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 62;

std::string one(const std::string& tensor, const std::vector<std::string>& storages = {kSixFloats}) {
  return pt(dict({{"w", tensor}}), storages);
}
std::string strided(int64_t offset, const std::vector<int64_t>& size, const std::vector<int64_t>& stride) {
  return one(tensor(storage("FloatStorage", "0", 6), offset, size, stride));
}

TEST(Hostile, TensorsBeyondTheirStorageAreRefused) {
  const auto beyond = AllOf(HasSubstr("tensor \"w\""), HasSubstr("reaches past its storage of 6 elements"));
  EXPECT_THAT(refusal(strided(0, {7}, {1})), beyond);
  EXPECT_THAT(refusal(strided(1, {6}, {1})), beyond);
  EXPECT_THAT(refusal(strided(6, {1}, {1})), beyond);
  EXPECT_THAT(refusal(strided(6, {}, {})), beyond);
  EXPECT_THAT(refusal(strided(kHuge, {1}, {1})), beyond);
  EXPECT_THAT(refusal(strided(INT64_MAX, {1}, {1})), beyond);
  EXPECT_THAT(refusal(strided(0, {2, 3}, {4, 1})), beyond);
  EXPECT_THAT(refusal(strided(0, {2}, {kHuge})), beyond);
  EXPECT_THAT(refusal(strided(0, {3, 3}, {kHuge, kHuge})), beyond);
  EXPECT_THAT(refusal(strided(0, {5}, {INT64_MAX})), beyond);
  EXPECT_THAT(refusal(strided(-1, {1}, {1})), HasSubstr("begins at element -1 of its storage"));
  EXPECT_THAT(refusal(strided(-1, {0}, {1})), HasSubstr("begins at element -1 of its storage"));
}

TEST(Hostile, ImpossibleShapesAreRefused) {
  EXPECT_THAT(refusal(strided(0, {-2}, {1})), HasSubstr("a negative shape, [-2]"));
  EXPECT_THAT(refusal(strided(0, {2, -3}, {3, 1})), HasSubstr("a negative shape, [2, -3]"));
  EXPECT_THAT(refusal(strided(0, {2}, {-1})), HasSubstr("a negative stride, [-1]"));
  EXPECT_THAT(refusal(strided(0, {0}, {-1})), HasSubstr("a negative stride, [-1]"));
  EXPECT_THAT(refusal(strided(0, {kHuge, kHuge}, {0, 0})), HasSubstr("whose size overflows"));
  EXPECT_THAT(refusal(strided(0, {INT64_MAX}, {0})), HasSubstr("whose size overflows"));
  EXPECT_THAT(refusal(strided(0, {0, kHuge, kHuge}, {0, 0, 0})), HasSubstr("whose size overflows"));
  EXPECT_THAT(refusal(strided(0, {int64_t{1} << 32, int64_t{1} << 32}, {0, 0})), HasSubstr("whose size overflows"));
  EXPECT_THAT(refusal(strided(0, {2, 3}, {1})), HasSubstr("has 2 dimensions and 1 strides"));
  EXPECT_THAT(refusal(strided(0, {}, {1})), HasSubstr("has 0 dimensions and 1 strides"));
  EXPECT_THAT(refusal(strided(0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1))),
              HasSubstr("has 65 dimensions"));
  EXPECT_THAT(refusal(one(call(global("torch._utils", "_rebuild_tensor"),
                               {storage("FloatStorage", "0", 6), number(0), tuple({text("6")}), numbers({1})}))),
              HasSubstr("a shape that is no number"));
  EXPECT_THAT(refusal(one(call(global("torch._utils", "_rebuild_tensor"), {storage("FloatStorage", "0", 6), number(0),
                                                                           tuple({"\x8a\x09"
                                                                                  "123456789"}),
                                                                           numbers({1})}))),
              HasSubstr("a shape that is no number"));
}

// A stride of 0 repeats an element as often as it likes.
TEST(Hostile, RepeatedStoragesDoNotFillTheMemory) {
  EXPECT_THAT(refusal(strided(0, {1'000'000, 1'000'000}, {0, 0})),
              HasSubstr("repeats its storage to 4000000000000 bytes"));
  EXPECT_THAT(refusal(strided(0, {1'000, 2'000}, {0, 0})), HasSubstr("repeats its storage to 8000000 bytes"));
  std::vector<std::pair<std::string, std::string>> many;
  many.reserve(300);
  for (int i = 0; i < 300; ++i) many.emplace_back(str(i), tensor(storage("FloatStorage", "0", 6), 0, {1'000}, {0}));
  const std::string bytes = pt(dict(many));
  const AllocationMeter meter;
  try {
    read(bytes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("repeats its storage"));
  }
  EXPECT_LT(meter.peak_bytes(), 5 * bytes.size() + (1 << 20) + 256 * 1024);
  EXPECT_EQ(read(strided(1, {1'000}, {0})).arrays[0].bytes.size(), 4'000u);
}

// One tensor under many names takes little in the file.
TEST(Hostile, ManyNamesOfOneTensorDoNotFillTheMemory) {
  const auto named = [](int count) {
    std::string body = floats() +
                       "q\1"
                       "0}(";
    for (int i = 0; i < count; ++i) body += text(str(i)) + "h\1";
    return pt(body + "u");
  };
  EXPECT_EQ(read(named(1000)).arrays.size(), 1000u);
  EXPECT_THAT(refusal(named(20'000)), HasSubstr("names 20000 tensors in a pickle of"));
}

// The stride of a dimension of one element means nothing: such a tensor needs no copy.
TEST(Hostile, StridesOfSingleElementsDoNotMatter) {
  const std::string six = storage("FloatStorage", "0", 6);
  const Weights weights =
      read(pt(dict({{"a", tensor(six, 0, {6}, {1})}, {"b", tensor(six, 0, {1, 2, 1, 3}, {kHuge, 3, 0, 1})}})));
  EXPECT_EQ(weights.arrays[0].bytes.data(), weights.arrays[1].bytes.data());
}

TEST(Hostile, StoragesThatLieAreRefused) {
  const auto floats_of = [](std::string_view type, std::string_view key, int64_t elements) {
    return tensor(storage(type, key, elements), 0, {1}, {1});
  };
  EXPECT_THAT(refusal(one(floats_of("FloatStorage", "0", 5))),
              HasSubstr("24 bytes in member \"x/data/0\", its pickle says 20"));
  EXPECT_THAT(refusal(one(floats_of("FloatStorage", "0", 7))), HasSubstr("its pickle says 28"));
  EXPECT_THAT(refusal(one(floats_of("DoubleStorage", "0", 6))), HasSubstr("its pickle says 48"));
  EXPECT_THAT(refusal(one(floats_of("FloatStorage", "0", kHuge))), HasSubstr("elements, which overflows"));
  EXPECT_THAT(refusal(one(floats_of("FloatStorage", "1", 6))), HasSubstr("no member \"x/data/1\""));
  EXPECT_THAT(refusal(one(floats_of("FloatStorage", "../data/0", 6))), HasSubstr("no member \"x/data/../data/0\""));
  EXPECT_THAT(refusal(one(floats_of("FloatStorage", "", 6))), HasSubstr("no member \"x/data/\""));
  EXPECT_THAT(refusal(pt(dict({{"a", floats()}, {"b", floats_of("IntStorage", "0", 6)}}))),
              HasSubstr("tensor \"b\" uses storage \"0\" as 24 bytes of I32, another tensor as 24 bytes of F32"));
  EXPECT_THAT(refusal(pt(dict({{"a", floats()}, {"b", floats_of("HalfStorage", "0", 6)}}))),
              HasSubstr("as 12 bytes of F16, another tensor as 24 bytes of F32"));
}

TEST(Hostile, NamesThatLieAreRefused) {
  EXPECT_THAT(refusal(pt(dict({{"w", floats()}, {"w", floats()}}))), HasSubstr("tensor \"w\" is there twice"));
  EXPECT_THAT(refusal(pt(dict({{"caf\xe9", floats()}}))),
              HasSubstr("tensor \"caf\\xE9\" has a name that is not UTF-8"));
  EXPECT_THAT(refusal(pt(dict({{std::string(5'000, 'w'), floats()}}))), HasSubstr("names a tensor with 5000 bytes"));
  EXPECT_THAT(refusal(pt("}K\1" + floats() + "s")), HasSubstr("holds no tensors under names, but 1 other entries"));
  EXPECT_THAT(refusal(pt(dict({{"w", floats()}}) + ".")), HasSubstr("something after the end of its pickle"));
}

TEST(Hostile, LegacyFilesThatLieAreRefused) {
  const std::string floats = dict({{"w", tensor(legacy_storage("FloatStorage", "5", 6), 0, {6}, {1})}});
  const std::string keys = whole(list({text("5")}));
  const std::string good = legacy(floats, keys + legacy_floats());
  ASSERT_EQ(as_text(read(good).arrays.at(0).bytes), kSixFloats);
  EXPECT_THAT(refusal(good + "x"), HasSubstr("1 bytes after its last storage"));
  EXPECT_THAT(refusal(legacy(floats, keys + legacy_floats(7))),
              HasSubstr("7 elements in storage \"5\", its pickle says 6"));
  EXPECT_THAT(refusal(legacy(floats, keys + legacy_floats(~uint64_t{0}))), HasSubstr("18446744073709551615 elements"));
  EXPECT_THAT(refusal(legacy(floats, whole(list({})))), HasSubstr("does not list storage \"5\""));
  EXPECT_THAT(refusal(legacy(floats, whole(list({text("6")})))), HasSubstr("a storage \"6\" that nothing uses"));
  EXPECT_THAT(refusal(legacy(floats, whole(list({text("5"), text("5")})) + legacy_floats() + legacy_floats())),
              HasSubstr("lists storage \"5\" twice"));
  EXPECT_THAT(refusal(legacy(floats, whole("N"))), HasSubstr("no list of its storages"));
  EXPECT_THAT(refusal(legacy(floats, whole(list({number(5)})))), HasSubstr("a storage whose key is no string"));
  const auto two = [&](const std::string& other) {
    return legacy(dict({{"w", tensor(legacy_storage("FloatStorage", "5", 6), 0, {6}, {1})}, {"v", other}}),
                  keys + legacy_floats());
  };
  EXPECT_THAT(refusal(two(tensor(legacy_storage("IntStorage", "5", 6), 0, {6}, {1}))), HasSubstr("in two ways"));
  EXPECT_THAT(refusal(two(tensor(legacy_storage("FloatStorage", "5", 5), 0, {5}, {1}))), HasSubstr("in two ways"));
  const auto view = [&](int64_t offset, int64_t size) {
    const std::string part = tuple({text("9"), number(offset), number(size)});
    return two(tensor(legacy_storage("FloatStorage", "5", 6, part), 0, {2}, {1}));
  };
  EXPECT_EQ(read(view(4, 2)).arrays.at(1).bytes.size(), 8u);
  EXPECT_THAT(refusal(view(5, 1)), HasSubstr("reaches past its storage of 1 elements"));
  EXPECT_THAT(refusal(view(5, 2)), HasSubstr("6 elements, and a view of 2 from 5"));
  EXPECT_THAT(refusal(view(-1, 2)), HasSubstr("a view of 2 from -1"));
  EXPECT_THAT(refusal(view(kHuge, kHuge)), HasSubstr("6 elements, and a view of"));
}

TEST(Hostile, LegacyHeadsThatLieAreRefused) {
  const std::string magic = whole("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"), version = whole(number(1001));
  EXPECT_THAT(refusal(whole("N")), HasSubstr("a Python pickle, but not a file of torch.save"));
  EXPECT_THAT(refusal(whole(number(5))), HasSubstr("not a file of torch.save"));
  EXPECT_THAT(refusal(magic + whole("N")), HasSubstr("not a file of torch.save"));
  EXPECT_THAT(refusal(magic + whole(number(1002))), HasSubstr("version 1002 of the PyTorch file format"));
  EXPECT_THAT(refusal(magic + version + whole("N")), HasSubstr("not a file of torch.save"));
  EXPECT_THAT(refusal(magic + version + whole(dict({{"little_endian", "\x89"}}))), HasSubstr("big-endian"));
  EXPECT_THAT(refusal("\x80\x02"), HasSubstr("ends in the middle of its pickle"));
}

TEST(Hostile, EveryTruncationOfALegacyFileIsRefused) {
  const std::string floats = dict({{"w", tensor(legacy_storage("FloatStorage", "5", 6), 0, {6}, {1})}});
  const std::string good = legacy(floats, whole(list({text("5")})) + legacy_floats());
  for (size_t size = 0; size < good.size(); ++size) {
    SCOPED_TRACE(size);
    ASSERT_FALSE(refusal(good.substr(0, size)).empty());
  }
}

TEST(Hostile, OtherFilesAreNamedByWhatTheyLookLike) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty: not a weights file"));
  EXPECT_THAT(refusal("\n<!DOCTYPE html><html>404"), HasSubstr("looks like HTML: not a weights file"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(refusal("{\"metadata\": {}}"), HasSubstr("looks like JSON"));
  EXPECT_THAT(refusal(std::string("\x1f\x8b\x08") + std::string(20, '\0')), HasSubstr("is gzip"));
  EXPECT_THAT(refusal("\x89HDF\r\n\x1a\n"), HasSubstr("HDF5"));
  EXPECT_THAT(refusal(std::string(5000, '\0')), HasSubstr("is in a format that is not known"));
  EXPECT_THAT(refusal("PK\x03\x04"), HasSubstr("a zip archive without its end"));
  std::string tar(1024, '\0');
  tar.replace(0, 5, "x.txt").replace(257, 5, "ustar");
  EXPECT_THAT(refusal(tar), HasSubstr("is a tar archive"));
  EXPECT_THAT(refusal(std::string("\xff\xff\xff\xff\0\0\0\0{\"w\": 1}", 16)),
              HasSubstr("header length 4294967295 exceeds"));
  MemoryFileSystem fs;
  fs.make_directories("/folder");
  for (const char* path : {"/none.pt", "/folder"}) {
    try {
      read_weights(fs, path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_EQ(error.where(), path);
    }
  }
}

// Whatever happens to a file's bytes: it is read or refused, within bounds.
TEST(Hostile, MutatedFilesAreReadOrRefused) {
  const uint32_t seed = 73;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string folder = "tests/testdata/weights/";
  constexpr std::string_view kOpcodes = "(.012GJKMNQRTUXabcdehjlqrstu)}]\x80\x81\x85\x93\x94";
  int refused = 0, tried = 0;
  for (const char* name : {"zip_checkpoint.pt", "zip_views.pt", "zip_protocol5.pt", "zip_without_crc.pt",
                           "legacy_checkpoint.pt", "legacy_views.pt", "legacy_python2.pt", "legacy_new_parameter.pt"}) {
    const std::string whole = FileSystem::real().read_file(folder + name);
    for (int i = 0; i < 500; ++i, ++tried) {
      std::string bytes = whole;
      for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n) {
        const size_t at = random() % bytes.size();
        switch (random() % 5) {
          case 0:
            bytes[at] = static_cast<char>(random());
            break;
          case 1:
            bytes[at] = kOpcodes[random() % kOpcodes.size()];
            break;
          case 2:
            bytes.resize(at + 1);
            break;
          case 3:
            bytes.insert(at, 1, static_cast<char>(random()));
            break;
          default:
            bytes.replace(at, std::min<size_t>(8, bytes.size() - at), 8, '\xff');
            break;
        }
      }
      try {
        const Weights weights = read(bytes);
        for (const checkpoint::NamedArray& array : weights.arrays) {
          uint64_t size = checkpoint::dtype_size(array.dtype);
          for (const int64_t extent : array.shape) size *= static_cast<uint64_t>(extent);
          ASSERT_EQ(array.bytes.size(), size);
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::kData) << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, tried / 4);
}

}  // namespace
}  // namespace skytrain::weights
