#include "skytrain/data/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/guess_format.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Jsonl : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open_spec(std::string_view text, const recipe::DatasetSpec& spec,
                                     const OpenOptions& options) {
    put_file(fs_, spec.path, text);
    return open_dataset(fs_, spec, options);
  }
  std::unique_ptr<Dataset> rows(std::string_view text, std::vector<std::string> target = {"y"},
                                const OpenOptions& options = {}) {
    recipe::DatasetSpec spec;
    spec.format = "jsonl";
    spec.path = "/d/t.jsonl";
    spec.target = std::move(target);
    return open_spec(text, spec, options);
  }
  std::unique_ptr<Dataset> pictures(std::string_view text, const OpenOptions& options = {}) {
    recipe::DatasetSpec spec;
    spec.format = "jsonl";
    spec.path = "/d/metadata.jsonl";
    spec.image = "file_name";
    spec.target = {"label"};
    spec.size = 4;
    return open_spec(text, spec, options);
  }
  static std::string refusal(const std::function<void()>& open, ErrorKind kind = ErrorKind::kData) {
    try {
      open();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  std::string rows_refusal(std::string_view text, std::vector<std::string> target = {"y"},
                           const OpenOptions& options = {}, ErrorKind kind = ErrorKind::kData) {
    return refusal([&] { rows(text, target, options); }, kind);
  }
  std::string pictures_refusal(std::string_view text, const OpenOptions& options = {},
                               ErrorKind kind = ErrorKind::kData) {
    return refusal([&] { pictures(text, options); }, kind);
  }
  static std::vector<float> features(const Dataset& set, uint64_t index) {
    const float* row = set.features(index);
    return {row, row + set.info().channels};
  }
  static std::vector<float> values(const Dataset& set, uint64_t index) {
    const float* row = set.values(index);
    return {row, row + set.info().values};
  }
  static std::vector<int64_t> labels(const Dataset& set) {
    std::vector<int64_t> all;
    for (uint64_t i = 0; i < set.info().samples; ++i) all.push_back(set.label(i));
    return all;
  }
  void put_picture(const std::string& name, uint8_t value) {
    put_file(fs_, "/d/" + name, image::encode_png(4, 4, std::string(48, static_cast<char>(value))));
  }

  MemoryFileSystem fs_;
};

TEST_F(Jsonl, NumbersAndArraysAreFeatures) {
  const auto set = rows("{\"a\": 1, \"x\": [2, 3.5], \"y\": 2}\n{\"y\": 0, \"x\": [-4, 5e0], \"a\": 6}\n");
  const DatasetInfo& info = set->info();
  EXPECT_EQ(info.format, "jsonl");
  EXPECT_EQ(info.samples, 2u);
  EXPECT_EQ(info.elements, Elements::kFloat32);
  EXPECT_EQ(info.channels, 3);
  EXPECT_EQ(info.classes, 3);
  EXPECT_THAT(info.feature_names, ElementsAre("a", "x[0]", "x[1]"));
  EXPECT_THAT(info.class_names, IsEmpty());
  EXPECT_THAT(features(*set, 0), ElementsAre(1, 2, 3.5f));
  EXPECT_THAT(features(*set, 1), ElementsAre(6, -4, 5));
  EXPECT_THAT(labels(*set), ElementsAre(2, 0));
  EXPECT_EQ(set->name(1), "t.jsonl[1]");
}

TEST_F(Jsonl, TextsAreClassNamesAlsoWhenTheyLookLikeNumbers) {
  const auto set = rows("{\"x\":1,\"y\":\"9\"}\n{\"x\":1,\"y\":\"10\"}\n{\"x\":1,\"y\":\"None\"}\n");
  EXPECT_THAT(set->info().class_names, ElementsAre("10", "9", "None"));
  EXPECT_THAT(labels(*set), ElementsAre(1, 0, 2));
  EXPECT_THAT(rows_refusal("{\"x\":1,\"y\":\"9\"}\n{\"x\":1,\"y\":9}\n"),
              HasSubstr("/d/t.jsonl:2:12: key \"y\" holds the number \"9\", and names before"));
  EXPECT_THAT(rows_refusal("{\"x\":1,\"y\":\"\"}\n"), HasSubstr("/d/t.jsonl:1:12: key \"y\" is empty"));
  EXPECT_THAT(rows_refusal("{\"x\":1,\"y\":-1}\n"), HasSubstr("key \"y\" holds -1, but classes are counted from 0"));
  EXPECT_THAT(rows_refusal("{\"x\":1,\"y\":1.5}\n"), HasSubstr("key \"y\" holds 1.5, which is no class"));
  EXPECT_THAT(rows_refusal("{\"x\":1,\"y\":7}\n", {"y"}, {.classes = 3}), HasSubstr("which is outside [0, 3)"));
}

TEST_F(Jsonl, ValuesAreInTheOrderOfTheRecipe) {
  const auto set =
      rows("{\"u\": [1, 2], \"a\": 3, \"v\": 4}\n", {"v", "u"}, {.classes = 3, .target = TargetKind::kValues});
  EXPECT_EQ(set->info().values, 3);
  EXPECT_THAT(values(*set, 0), ElementsAre(4, 1, 2));
  EXPECT_THAT(features(*set, 0), ElementsAre(3));
  EXPECT_EQ(rows("{\"a\":1,\"y\":[1,2]}\n", {"y"}, {.classes = 2, .target = TargetKind::kValues})->info().values, 2);
  EXPECT_EQ(rows("{\"a\":1,\"y\":1}\n", {"y"}, {.classes = 2, .target = TargetKind::kValues})->info().values, 0);
  EXPECT_THAT(rows_refusal("{\"a\":1,\"y\":[1,2]}\n", {"y"}, {.classes = 2}, ErrorKind::kRecipe),
              HasSubstr("data.train.target: names 2 values of a row, but cross_entropy takes one: the class"));
  EXPECT_THAT(
      rows_refusal("{\"a\":1,\"y\":[1,2]}\n", {"y"}, {.classes = 5, .target = TargetKind::kValues}, ErrorKind::kRecipe),
      HasSubstr("names 2 values of a row, but the model has 5 outputs"));
  EXPECT_THAT(rows_refusal("{\"a\":1,\"y\":\"x\"}\n", {"y"}, {.target = TargetKind::kValues}),
              HasSubstr("/d/t.jsonl:1:12: key \"y\" holds the text \"x\", expected a number"));
}

TEST_F(Jsonl, RowsThatDoNotFitAreNamedWithLineAndKey) {
  const std::string first = "{\"a\": 1, \"x\": [1, 2], \"y\": 0}\n";
  EXPECT_THAT(rows_refusal(first + "\n{\"a\": null, \"x\": [1, 2], \"y\": 0}\n"),
              HasSubstr("/d/t.jsonl:3:7: key \"a\" holds null: a missing value, expected a number"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": \"1\", \"x\": [1, 2], \"y\": 0}\n"),
              HasSubstr("/d/t.jsonl:2:7: key \"a\" holds the text \"1\", expected a number"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": 1, \"x\": [1], \"y\": 0}\n"),
              HasSubstr("/d/t.jsonl:2:15: key \"x\" holds an array of 1 number, expected an array of 2 numbers"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": 1, \"x\": [1, false], \"y\": 0}\n"),
              HasSubstr("key \"x\" holds an array with false at place 1, expected an array of 2 numbers"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": [1], \"x\": [1, 2], \"y\": 0}\n"),
              HasSubstr("key \"a\" holds an array of 1 number, expected a number"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": 1, \"z\": [1, 2], \"y\": 0}\n"),
              HasSubstr("/d/t.jsonl:2: has no key \"x\""));
  EXPECT_THAT(rows_refusal(first + "{\"a\": 1, \"x\": [1, 2], \"y\": 0, \"z\": 1}\n"),
              HasSubstr("/d/t.jsonl:2:36: key \"z\" is not in the first line"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": 1, \"x\": [1, 2], \"y\": null}\n"),
              HasSubstr("key \"y\" holds null: a missing value, expected a class"));
  EXPECT_THAT(rows_refusal(first + "{\"a\": 1e39, \"x\": [1, 2], \"y\": 0}\n"), HasSubstr("too large for float32"));
  EXPECT_THAT(rows_refusal("{\"id\": \"q\", \"y\": 0}\n"),
              HasSubstr("/d/t.jsonl:1:8: key \"id\" holds the text \"q\", expected a number, or an array of numbers"));
  EXPECT_THAT(rows_refusal("{\"x\": [], \"y\": 0}\n"), HasSubstr("key \"x\" holds an array of 0 numbers"));
  EXPECT_THAT(rows_refusal("{\"x[0]\": 1, \"x\": [2], \"y\": 0}\n"), HasSubstr("has two features \"x[0]\""));
  EXPECT_THAT(rows_refusal("\n"), HasSubstr("/d/t.jsonl: holds no line"));
  EXPECT_THAT(rows_refusal("{\"x\": 1, \"label\": 0}\n", {"lable"}, {}, ErrorKind::kRecipe),
              HasSubstr("has no key \"lable\" (did you mean \"label\"?)"));
  EXPECT_THAT(rows_refusal("{\"y\": 0}\n", {"y"}, {}, ErrorKind::kRecipe), HasSubstr("leaves no key of"));
}

TEST_F(Jsonl, EvaluationTakesFeaturesByName) {
  const auto train = rows("{\"a\": 1, \"x\": [2, 3], \"y\": \"p\"}\n{\"a\": 1, \"x\": [2, 3], \"y\": \"q\"}\n");
  const OpenOptions options{.eval = true, .train = &train->info()};
  const auto eval = rows("{\"y\": \"q\", \"x\": [7, 8], \"a\": 9}\n", {"y"}, options);
  EXPECT_THAT(features(*eval, 0), ElementsAre(9, 7, 8));
  EXPECT_THAT(eval->info().feature_names, ElementsAre("a", "x[0]", "x[1]"));
  EXPECT_THAT(labels(*eval), ElementsAre(1));
  EXPECT_THAT(rows_refusal("{\"y\": \"q\", \"x\": [7], \"a\": 9}\n", {"y"}, options),
              HasSubstr("/d/t.jsonl:1: has no feature \"x[1]\", which the training set has"));
  EXPECT_THAT(rows_refusal("{\"y\": \"r\", \"x\": [7, 8], \"a\": 9}\n", {"y"}, options),
              HasSubstr("the training set has no class \"r\""));
}

TEST_F(Jsonl, FingerprintsAreOfTheContent) {
  const std::string text = "{\"a\": 1, \"y\": 0}\n{\"a\": 2, \"y\": 1}\n";
  EXPECT_EQ(rows(text)->info().fingerprint, rows("\n{\"y\":0,\"a\":1.0}\r\n{\"a\":2e0,\"y\":1}")->info().fingerprint);
  EXPECT_NE(rows(text)->info().fingerprint, rows("{\"a\": 1, \"y\": 0}\n{\"a\": 2, \"y\": 0}\n")->info().fingerprint);
  put_picture("1.png", 1);
  put_picture("2.png", 1);
  const std::string one = "{\"file_name\": \"1.png\", \"label\": 0}\n",
                    two = "{\"file_name\": \"2.png\", \"label\": 0}\n";
  EXPECT_EQ(pictures(one + two)->info().fingerprint, pictures(one + "\n" + two)->info().fingerprint);
  EXPECT_NE(pictures(one + two)->info().fingerprint, pictures(two + one)->info().fingerprint);
}

TEST_F(Jsonl, LinesNamePictures) {
  put_picture("cat/1.png", 10);
  put_picture("dog 2.png", 20);
  const auto set = pictures(
      "{\"file_name\": \"dog 2.png\", \"label\": \"dog\", \"box\": [[1, null]]}\n"
      "{\"label\": \"cat\", \"file_name\": \"cat/./1.png\"}\n{\"file_name\": \"dog 2.png\", \"label\": \"dog\"}\n");
  const DatasetInfo& info = set->info();
  EXPECT_EQ(info.samples, 3u);
  EXPECT_EQ(info.elements, Elements::kUint8);
  EXPECT_EQ(info.channels, 3);
  EXPECT_EQ(info.height, 4);
  EXPECT_THAT(info.class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(labels(*set), ElementsAre(1, 0, 1));
  EXPECT_EQ(copy_of_pixels(*set, 1)[0], 10);
  EXPECT_EQ(copy_of_pixels(*set, 2)[0], 20);
  EXPECT_EQ(set->name(1), "cat/./1.png");
  ASSERT_NE(set->encoded_pictures(), nullptr);
  Scratch scratch;
  EXPECT_EQ(set->encoded_pictures()->encoded(0, scratch).size(), set->encoded_pictures()->encoded_bytes(0));
  EXPECT_EQ(scratch.path, "/d/dog 2.png");
  const auto numbers = pictures("{\"file_name\": \"cat/1.png\", \"label\": 4}\n", {.classes = 5});
  EXPECT_EQ(numbers->info().classes, 5);
  EXPECT_EQ(numbers->label(0), 4);
}

TEST_F(Jsonl, EvaluationTakesClassesByName) {
  put_picture("1.png", 1);
  const auto train = pictures("{\"file_name\":\"1.png\",\"label\":\"a\"}\n{\"file_name\":\"1.png\",\"label\":\"b\"}\n");
  const OpenOptions options{.eval = true, .train = &train->info()};
  EXPECT_EQ(pictures("{\"file_name\":\"1.png\",\"label\":\"b\"}\n", options)->label(0), 1);
  EXPECT_THAT(pictures_refusal("{\"file_name\":\"1.png\",\"label\":\"c\"}\n", options),
              HasSubstr("/d/metadata.jsonl:1:30: the training set has no class \"c\""));
}

TEST_F(Jsonl, PicturesThatAreNoneAreNamedWithTheirLine) {
  put_picture("1.png", 1);
  const auto of_name = [&](const std::string& name) {
    return pictures_refusal("{\"file_name\":\"1.png\",\"label\":0}\n{\"file_name\": \"" + name + "\",\"label\":0}\n");
  };
  const std::string place = "/d/metadata.jsonl:2:15: key \"file_name\" ";
  EXPECT_THAT(of_name("2.png"),
              AllOf(HasSubstr(place + "names a file that is not there: 2.png"), HasSubstr("looked for /d/2.png")));
  EXPECT_THAT(of_name("/d/1.png"), HasSubstr(place + "names a file by an absolute path: /d/1.png"));
  EXPECT_THAT(of_name("../d/1.png"), HasSubstr(place + "leads out of the folder"));
  EXPECT_THAT(of_name("x/../1.png"), HasSubstr(place + "leads out of the folder"));
  EXPECT_THAT(of_name("x/.."), HasSubstr(place + "leads out of the folder"));
  EXPECT_THAT(of_name(""), HasSubstr(place + "names no file"));
  EXPECT_THAT(of_name("1.png\\u0000"), HasSubstr(place + "names a file with a NUL character"));
  EXPECT_THAT(of_name(std::string(5000, 'x')), HasSubstr(place + "names a file by too long a path"));
  EXPECT_THAT(of_name(std::string(256, 'x')), HasSubstr(place + "names a file by too long a path"));
  EXPECT_THAT(of_name("."), HasSubstr(place + "names what is no file"));
  EXPECT_THAT(
      pictures_refusal("{\"file_name\": 1, \"label\": 0}\n"),
      HasSubstr("/d/metadata.jsonl:1:15: key \"file_name\" holds a number, expected the name of a picture's file"));
  EXPECT_THAT(pictures_refusal("{\"image\": \"1.png\", \"label\": 0}\n"),
              HasSubstr("/d/metadata.jsonl:1: has no key \"file_name\""));
  EXPECT_THAT(pictures_refusal("{\"file_name\": \"1.png\", \"labels\": 0}\n"),
              HasSubstr("has no key \"label\" (did you mean \"labels\"?)"));
  EXPECT_THAT(pictures_refusal("{\"file_name\": \"1.png\", \"label\": [0]}\n"),
              HasSubstr("key \"label\" holds an array of 1 number, expected a class"));
  put_picture("..1.png", 2);
  EXPECT_EQ(pictures("{\"file_name\": \"..1.png\", \"label\": 0}\n")->info().samples, 1u) << "that is a name";
}

TEST_F(Jsonl, ADamagedPictureIsNamedWhenItIsRead) {
  put_file(fs_, "/d/1.png", "no picture");
  const auto set = pictures("{\"file_name\": \"1.png\", \"label\": 0}\n");
  EXPECT_THAT(refusal([&] { copy_of_pixels(*set, 0); }), HasSubstr("/d/1.png: is no JPEG or PNG picture"));
}

// Caches of downloads are folders of links to files elsewhere.
TEST(JsonlLinks, AreFollowed) {
  const std::string root = testing::TempDir() + "skytrain-jsonl-" + std::to_string(getpid());
  FileSystem& fs = FileSystem::real();
  put_file(fs, root + "/blobs/abc", image::encode_png(4, 4, std::string(48, 7)));
  put_file(fs, root + "/set/metadata.jsonl", "{\"image\": \"1.png\", \"class\": 0}\n");
  std::filesystem::create_symlink("../blobs/abc", root + "/set/1.png");
  recipe::DatasetSpec spec;
  spec.format = "jsonl";
  spec.path = root + "/set/metadata.jsonl";
  spec.image = "image";
  spec.target = {"class"};
  spec.size = 2;
  EXPECT_EQ(guess_format(fs, spec.path), "jsonl");
  EXPECT_EQ(copy_of_pixels(*open_dataset(fs, spec, {}), 0)[0], 7);
  fs.remove_tree(root);
}

}  // namespace
}  // namespace skytrain::data
