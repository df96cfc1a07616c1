#include "skytrain/data/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "skytrain/base/error.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using image::blocks;
using image::encode_jpeg;
using image::encode_png;
using image::ramp;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

recipe::DatasetSpec spec_of(const std::string& path, int64_t size = 4) {
  recipe::DatasetSpec spec;
  spec.path = path;
  spec.format = "imagefolder";
  spec.size = size;
  return spec;
}

// A picture of one colour.
std::string picture(uint8_t red, uint8_t green = 0, uint8_t blue = 0, int64_t width = 4, int64_t height = 4) {
  std::string pixels;
  for (int64_t i = 0; i < width * height; ++i) {
    for (const uint8_t c : {red, green, blue}) pixels += static_cast<char>(c);
  }
  return encode_png(width, height, pixels);
}

class Folder : public ::testing::Test {
 protected:
  void put(const std::string& path, std::string_view content) { put_file(fs_, path, content); }
  std::unique_ptr<Dataset> open(const std::string& path = "/set", const OpenOptions& options = {}) {
    return open_dataset(fs_, spec_of(path), options);
  }
  std::string refusal(const std::string& path = "/set", const OpenOptions& options = {},
                      ErrorKind kind = ErrorKind::kData) {
    try {
      open(path, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  static std::vector<std::string> names(const Dataset& set) {
    std::vector<std::string> all;
    for (uint64_t i = 0; i < set.info().samples; ++i) all.push_back(set.name(i));
    return all;
  }

  MemoryFileSystem fs_;
};

TEST_F(Folder, ClassesAreFoldersSortedByName) {
  put("/set/dog/1.png", picture(10));
  put("/set/cat/b.png", picture(20));
  put("/set/cat/a.png", picture(30, 31, 32));
  put("/set/Zebra/x.png", picture(40));
  const auto set = open();
  const DatasetInfo& info = set->info();
  EXPECT_EQ(info.samples, 4u);
  EXPECT_EQ(info.elements, Elements::kUint8);
  EXPECT_EQ(info.channels, 3);
  EXPECT_EQ(info.height, 4);
  EXPECT_EQ(info.width, 4);
  EXPECT_EQ(info.classes, 3);
  EXPECT_EQ(info.values, 0);
  EXPECT_EQ(info.format, "imagefolder");
  EXPECT_THAT(info.class_names, ElementsAre("Zebra", "cat", "dog"));
  EXPECT_THAT(info.notes, IsEmpty());
  EXPECT_THAT(names(*set), ElementsAre("Zebra/x.png", "cat/a.png", "cat/b.png", "dog/1.png"));
  EXPECT_EQ(set->label(0), 0);
  EXPECT_EQ(set->label(2), 1);
  EXPECT_EQ(set->label(3), 2);
  const std::vector<uint8_t> pixels = copy_of_pixels(*set, 1);
  EXPECT_EQ(pixels, [] {  // CHW
    std::vector<uint8_t> expected(16, 30);
    expected.insert(expected.end(), 16, 31);
    expected.insert(expected.end(), 16, 32);
    return expected;
  }());
}

// `.ipynb_checkpoints` became class 0 and shifted all labels.
TEST_F(Folder, HiddenFilesAndLeftoversArePassedOverAndNamedOnce) {
  for (const char* name : {"0", "1", "2", "3"}) {
    put(std::string("/set/cat/") + name + ".PNG", picture(1));
    put(std::string("/set/dog/") + name + ".PNG", picture(2));
  }
  for (const char* path : {".ipynb_checkpoints/0-checkpoint.png", "__MACOSX/._0.png", "@eaDir/0.png", "lost+found/x",
                           "cat/.ipynb_checkpoints/0.png", "dog/@eaDir/0.PNG", "cat/.hidden.png"}) {
    put(std::string("/set/") + path, picture(3));
  }
  for (const char* path :
       {".DS_Store", "README.txt", "cat/Thumbs.db", "dog/Thumbs.db", "dog/labels.csv", "stray.png"}) {
    put(std::string("/set/") + path, "text");
  }
  const auto set = open();
  EXPECT_THAT(set->info().class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(set->info().samples, 8u);
  ASSERT_EQ(set->info().notes.size(), 1u);
  EXPECT_EQ(set->info().notes[0],
            "/set: passed over what is no class or picture: .DS_Store, .ipynb_checkpoints/, @eaDir/, README.txt, "
            "__MACOSX/, lost+found/, stray.png, cat/.hidden.png, cat/.ipynb_checkpoints/, cat/Thumbs.db, dog/@eaDir/, "
            "dog/Thumbs.db, dog/labels.csv");
}

TEST_F(Folder, SubfoldersAreWalkedInTheOrderOfTorchvision) {
  for (const char* path : {"c/z.png", "c/a/x.png", "c/a/b/y.png", "c/a-b/w.png", "c/B.png", "c/a/A.png"}) {
    put(std::string("/set/") + path, picture(1));
  }
  // sorted(os.walk(…)): by the folder's whole name, in which '-' comes before '/'.
  EXPECT_THAT(names(*open()),
              ElementsAre("c/B.png", "c/z.png", "c/a/A.png", "c/a/x.png", "c/a-b/w.png", "c/a/b/y.png"));
}

TEST_F(Folder, ContentDecidesNotTheName) {
  put("/set/a/1.JPEG", picture(9));  // ImageNet has such a one
  put("/set/a/2.png", encode_jpeg(16, 16, blocks(16, 16)));
  put("/set/a/3", picture(8));
  put("/set/a/4.dat", encode_jpeg(16, 16, blocks(16, 16)));
  put("/set/a/5.bmp", picture(7));
  put("/set/a/notes", "no picture");
  const auto set = open();
  EXPECT_THAT(names(*set), ElementsAre("a/1.JPEG", "a/2.png", "a/3", "a/4.dat", "a/5.bmp"));
  for (uint64_t i = 0; i < 5; ++i) copy_of_pixels(*set, i);
  EXPECT_EQ(copy_of_pixels(*set, 4)[0], 7);
}

TEST_F(Folder, PicturesOfOtherTypesAreRefusedByName) {
  put("/set/ants/1.png", picture(1));
  put("/set/ants/imageNotFound.gif", "GIF89a...");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("/set/ants/imageNotFound.gif: is a GIF image: only JPEG and PNG"),
                               HasSubstr("convert it to PNG or JPEG, or remove it")));
  put("/set/ants/zebra", "RIFF\4\1\1\1WEBPVP8 ");  // its content says so
  EXPECT_THAT(refusal(), HasSubstr("convert it and 1 more such files"));
  fs_.remove_file("/set/ants/imageNotFound.gif");
  EXPECT_THAT(refusal(), HasSubstr("/set/ants/zebra: is a WebP image"));
  fs_.remove_file("/set/ants/zebra");
  put("/set/ants/scan.TIFF", "?");  // its name says so
  EXPECT_THAT(refusal(), HasSubstr("/set/ants/scan.TIFF: is a .tiff file"));
}

TEST_F(Folder, AClassWithoutPicturesIsNamed) {
  put("/set/cat/1.png", picture(1));
  put("/set/dog/readme.txt", "x");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("/set/dog: holds no pictures"), HasSubstr("the folder holds: readme.txt")));
  fs_.remove_file("/set/dog/readme.txt");
  EXPECT_THAT(refusal(), HasSubstr("/set/dog: holds no pictures"));
}

// A name in another encoding would break the records of the run, which are UTF-8.
TEST_F(Folder, NamesAreText) {
  put("/set/cat/\xe9t\xe9.png", picture(1));
  put("/set/cat/\xe9.txt", "x");
  const auto set = open();
  EXPECT_EQ(set->name(0), "cat/\\xE9t\\xE9.png");
  EXPECT_THAT(set->info().notes[0], HasSubstr("cat/\\xE9.txt"));
  EXPECT_EQ(copy_of_pixels(*set, 0)[0], 1);
  put("/set/d\xf6g/1.png", picture(1));
  EXPECT_THAT(refusal(), HasSubstr("/set/d\\xF6g: the name of this class is not UTF-8"));
}

TEST_F(Folder, AFolderThatIsNoneOfClassesIsSaidToBe) {
  EXPECT_THAT(refusal(), HasSubstr("/set: no such folder"));
  put("/set/1.png", picture(1));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("/set: has no class folders"), HasSubstr("the folder holds: 1.png")));
  EXPECT_THAT(refusal("/set/1.png"), HasSubstr("/set/1.png: is a file, expected a folder with one folder of pictures"));
}

// Trained on the folder above the right one: two classes, train and val, and a fine accuracy.
TEST_F(Folder, SplitsAreNotClasses) {
  put("/set/train/cat/1.png", picture(1));
  put("/set/val/cat/1.png", picture(1));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("holds splits of a data set (train, val)"),
                               HasSubstr("give the path of one split: /set/train")));
  put("/set/cat/1.png", picture(1));  // now train may well be a class
  EXPECT_EQ(open()->info().classes, 3);
}

TEST_F(Folder, EvaluationTakesTheLabelsOfTheTrainingSet) {
  for (const char* path : {"/train/ant/1.png", "/train/bee/1.png", "/train/cat/1.png"}) put(path, picture(1));
  put("/eval/bee/1.png", picture(1));
  put("/eval/cat/1.png", picture(1));
  const auto train = open("/train", {.classes = 3});
  EXPECT_THAT(train->info().notes, IsEmpty());
  const auto eval = open("/eval", {.classes = 3, .eval = true, .train = &train->info()});
  EXPECT_EQ(eval->label(0), 1);
  EXPECT_EQ(eval->label(1), 2);
  EXPECT_EQ(eval->info().classes, 3);
  EXPECT_THAT(eval->info().class_names, ElementsAre("ant", "bee", "cat"));
  EXPECT_THAT(eval->info().notes, ElementsAre("/eval: has no pictures of these classes: ant"));
  EXPECT_EQ(open("/eval")->label(0), 0);  // alone, it counts for itself

  put("/eval/bees/1.png", picture(1));
  EXPECT_THAT(refusal("/eval", {.eval = true, .train = &train->info()}),
              AllOf(HasSubstr("/eval/bees: the training set has no class \"bees\" (did you mean \"bee\"?)"),
                    HasSubstr("its classes: ant, bee, cat")));
}

TEST_F(Folder, ClassesAreComparedWithTheModels) {
  for (const char* path : {"/set/a/1.png", "/set/b/1.png", "/set/c/1.png"}) put(path, picture(1));
  EXPECT_THAT(
      refusal("/set", {.classes = 2}),
      AllOf(HasSubstr("/set: has 3 classes (a, b, c), the model has 2 outputs"), HasSubstr("set model.classes to 3")));
  EXPECT_THAT(open("/set", {.classes = 3})->info().notes, IsEmpty());
  EXPECT_THAT(open("/set", {.classes = 10})->info().notes,
              ElementsAre("/set: has 3 classes (a, b, c), the model has 10 outputs: set model.classes to 3"));
}

TEST_F(Folder, SizesThatMakeNoSenseAreTheRecipesFault) {
  put("/set/a/1.png", picture(1));
  const auto refused = [&](int64_t size, std::optional<int64_t> resize) -> std::string {
    recipe::DatasetSpec spec = spec_of("/set", size);
    spec.resize = resize;
    try {
      open_dataset(fs_, spec, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      return error.message();
    }
    return "accepted";
  };
  EXPECT_EQ(refused(4, std::nullopt), "accepted");
  EXPECT_EQ(refused(4, 4), "accepted");
  EXPECT_THAT(refused(4, 3), HasSubstr("data.train.resize: is 3, less than the 4 pixels of size"));
  EXPECT_THAT(refused(0, std::nullopt), HasSubstr("data.train.size: is 0"));
}

TEST_F(Folder, ResizeAndCropAreThoseOfTheRecipe) {
  // 16 x 8: left half black, right half white.
  std::string pixels;
  for (int i = 0; i < 16 * 8; ++i) pixels += std::string(3, i % 16 < 8 ? '\0' : '\xff');
  put("/set/a/1.png", encode_png(16, 8, pixels));
  recipe::DatasetSpec spec = spec_of("/set", 2);
  const auto line = [&] {
    const std::vector<uint8_t> all = copy_of_pixels(*open_dataset(fs_, spec, {}), 0);
    return std::vector<uint8_t>(all.begin(), all.begin() + spec.size);
  };
  spec.resize = 8;
  EXPECT_THAT(line(), ElementsAre(0, 255));  // the middle of the picture as it is
  spec.resize.reset();
  EXPECT_THAT(line(), ElementsAre(32, 223));  // scaled to 4 x 2, which blurs the edge
  spec.size = 8;
  EXPECT_THAT(line(), ElementsAre(0, 0, 0, 0, 255, 255, 255, 255));
}

TEST_F(Folder, DamagedPicturesAreNamedWhenTheyAreNeeded) {
  put("/set/a/1.png", picture(1));
  put("/set/a/2.jpg", encode_jpeg(40, 24, blocks(40, 24), {.progressive = true}).substr(0, 400));
  put("/set/b/3.jpg", "");
  const auto set = open();
  copy_of_pixels(*set, 0);
  const auto refused = [&](uint64_t index) -> std::string {
    try {
      copy_of_pixels(*set, index);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.message();
    }
    return "";
  };
  EXPECT_THAT(refused(1), HasSubstr("/set/a/2.jpg: is a truncated JPEG picture"));
  EXPECT_THAT(refused(2), HasSubstr("/set/b/3.jpg: is empty (0 bytes)"));
  put("/set/a/1.png", picture(1).substr(0, 60));  // shorter than when it was listed
  EXPECT_THAT(refused(0), HasSubstr("/set/a/1.png: is 60 bytes, expected at least"));
}

TEST_F(Folder, FingerprintFollowsNamesSizesAndLabels) {
  put("/set/a/1.png", picture(1));
  put("/set/b/2.png", picture(2));
  const std::string original = open()->info().fingerprint;
  EXPECT_EQ(original.size(), 32u);
  put("/copy/a/1.png", picture(1));
  put("/copy/b/2.png", picture(2));
  EXPECT_EQ(open("/copy")->info().fingerprint, original) << "where it lies does not matter";
  recipe::DatasetSpec larger = spec_of("/set", 8);
  EXPECT_EQ(open_dataset(fs_, larger, {})->info().fingerprint, original) << "nor what the recipe makes of it";
  put("/set/.DS_Store", "x");
  EXPECT_EQ(open()->info().fingerprint, original) << "nor what is passed over";
  put("/set/b/2.png", picture(2) + "x");
  EXPECT_NE(open()->info().fingerprint, original);
  put("/set/b/2.png", picture(2));
  EXPECT_EQ(open()->info().fingerprint, original);
  fs_.rename("/set/b/2.png", "/set/b/3.png");
  EXPECT_NE(open()->info().fingerprint, original);
  fs_.rename("/set/b/3.png", "/set/b/2.png");
  fs_.rename("/set/b", "/set/c");
  EXPECT_NE(open()->info().fingerprint, original);
  DatasetInfo other;
  other.class_names = {"b", "a"};
  EXPECT_NE(open("/copy", {.eval = true, .train = &other})->info().fingerprint, original);
}

TEST_F(Folder, StaysWhatItWas) {  // runs record the fingerprint, and a resumed one compares it
  put("/set/a/1.png", std::string(100, 'x'));
  put("/set/b/2/3.jpg", std::string(200, 'x'));
  EXPECT_EQ(open()->info().fingerprint, "f41b847529494c04f5bc0168cb892136");
}

TEST_F(Folder, ManyThreadsReadTheSame) {
  for (int i = 0; i < 24; ++i) {
    const std::string name = "/set/" + std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i);
    put(name + ".jpg", encode_jpeg(40 + i, 30, ramp(static_cast<size_t>(40 + i) * 90, 3 + i)));
  }
  const auto set = open();
  std::vector<std::vector<uint8_t>> expected;
  for (uint64_t i = 0; i < 24; ++i) expected.push_back(copy_of_pixels(*set, i));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Scratch scratch;
      for (uint64_t n = 0; n < 96; ++n) {
        const uint64_t i = (n * 7 + static_cast<uint64_t>(t)) % 24;
        const uint8_t* pixels = set->pixels(i, scratch);
        EXPECT_TRUE(std::equal(expected[i].begin(), expected[i].end(), pixels));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Folder, ABatchIsFilledFromIt) {
  put("/set/a/1.png", picture(51, 102, 204));
  put("/set/b/2.png", picture(255, 255, 255));
  const auto set = open();
  std::vector<float> images(2 * 3 * 16);
  std::vector<int64_t> labels(2);
  BatchFiller(*set, {}, 0, true).fill(0, std::vector<uint64_t>{1, 0}, images.data(), {.labels = labels.data()});
  EXPECT_THAT(labels, ElementsAre(1, 0));
  EXPECT_EQ(images[0], 1.0f);
  EXPECT_FLOAT_EQ(images[48], 0.2f);
  EXPECT_FLOAT_EQ(images[64], 0.4f);
  EXPECT_FLOAT_EQ(images[80], 0.8f);
}

// A gradient in which each pixel says where it is: red its column, green its line.
std::string gradient(int64_t width, int64_t height) {
  std::string pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (const int64_t c : {x, y, int64_t{0}}) pixels += static_cast<char>(c);
    }
  }
  return encode_png(width, height, pixels);
}

TEST_F(Folder, RandomCropsAreOfEpochAndSampleAlone) {
  put("/set/a/1.png", gradient(200, 150));
  put("/set/a/2.png", gradient(200, 150));
  const auto set = open();
  const std::vector<recipe::TransformSpec> transforms = {
      {.name = "random_resized_crop"}, {.name = "flip"}, {.name = "normalize", .mean = {0.5}, .std = {0.25}}};
  const BatchFiller filler(*set, transforms, /*seed=*/3, /*training=*/true);
  constexpr size_t kSize = 3 * 4 * 4;
  const auto fill = [&](uint64_t epoch, const std::vector<uint64_t>& samples, image::Layout layout) {
    std::vector<float> images(samples.size() * kSize);
    std::vector<int64_t> labels(samples.size());
    filler.fill(epoch, samples, images.data(), {.labels = labels.data()}, {.layout = layout});
    return images;
  };
  const std::vector<float> both = fill(1, {0, 1}, image::Layout::kChw);
  const std::vector<float> second = fill(1, {1}, image::Layout::kChw);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), both.begin() + kSize));  // whatever it is batched with
  EXPECT_NE(second, fill(1, {0}, image::Layout::kChw));
  EXPECT_NE(second, fill(2, {1}, image::Layout::kChw));
  ASSERT_TRUE(filler.fills_hwc());
  const std::vector<float> hwc = fill(1, {1}, image::Layout::kHwc);
  for (size_t c = 0; c < 3; ++c)
    for (size_t at = 0; at < 16; ++at) EXPECT_EQ(hwc[at * 3 + c], second[c * 16 + at]);
  for (const float blue : std::span(second).subspan(32)) EXPECT_FLOAT_EQ(blue, -2);  // (0 - 0.5) / 0.25

  const BatchFiller evaluation(*set, transforms, /*seed=*/3, /*training=*/false);
  std::vector<float> once(kSize), again(kSize);
  std::vector<int64_t> label(1);
  evaluation.fill(0, std::vector<uint64_t>{0}, once.data(), {.labels = label.data()});
  evaluation.fill(5, std::vector<uint64_t>{1}, again.data(), {.labels = label.data()});
  EXPECT_EQ(once, again);  // equal pictures, and nothing random
}

TEST_F(Folder, PixelsAreChangedByEpochAndSampleInTrainingOnly) {
  put("/set/a/1.png", gradient(90, 60));
  const auto set = open();
  constexpr size_t kSize = 3 * 4 * 4;
  const auto fill = [&](const std::vector<recipe::TransformSpec>& transforms, uint64_t epoch, bool training) {
    std::vector<float> image(kSize);
    std::vector<int64_t> label(1);
    BatchFiller(*set, transforms, /*seed=*/3, training)
        .fill(epoch, std::vector<uint64_t>{0}, image.data(), {.labels = label.data()});
    return image;
  };
  const std::vector<float> plain = fill({}, 0, true);
  const std::vector<recipe::TransformSpec> changes = {{.name = "color_jitter", .brightness = 0.8, .hue = 0.3},
                                                      {.name = "rand_augment"},
                                                      {.name = "random_erasing", .p = 1, .scale = {0.3, 0.4}}};
  for (const recipe::TransformSpec& change : changes) {
    int different = 0, repeated = 0;
    for (uint64_t epoch = 0; epoch < 20; ++epoch) {
      different += fill({change}, epoch, true) != plain;
      repeated += fill({change}, epoch, true) == fill({change}, epoch, true);
      EXPECT_EQ(fill({change}, epoch, false), plain) << change.name;
    }
    EXPECT_GT(different, 10) << change.name;
    EXPECT_EQ(repeated, 20) << change.name;
  }
}

TEST_F(Folder, TransformsHaveAnOrder) {
  put("/set/a/1.png", picture(1));
  const auto set = open();
  const recipe::TransformSpec normalize{.name = "normalize", .mean = {0}, .std = {1}}, jitter{.name = "color_jitter"},
      crop{.name = "random_resized_crop"}, erasing{.name = "random_erasing"}, pad{.name = "pad_crop", .pad = 1};
  const auto refusal_of = [&](const std::vector<recipe::TransformSpec>& transforms) {
    try {
      BatchFiller(*set, transforms, 0, true);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(refusal_of({crop, jitter, normalize, erasing}), "");
  EXPECT_THAT(refusal_of({normalize, jitter}), HasSubstr("data.transforms[1].color_jitter: comes after normalize"));
  EXPECT_THAT(refusal_of({jitter, crop}), HasSubstr("comes after color_jitter"));
  EXPECT_THAT(refusal_of({erasing, normalize}), HasSubstr("comes after random_erasing"));
  EXPECT_THAT(refusal_of({pad, jitter}), HasSubstr("pad_crop is for pictures of one size"));
  EXPECT_THAT(refusal_of({crop, crop}), HasSubstr("second random crop"));
}

TEST(FolderOnDisk, LinksAreFollowedAndLoopsEnd) {
  const std::string root = testing::TempDir() + "skytrain-folder-" + std::to_string(getpid());
  put_file(FileSystem::real(), root + "/set/a/1.png", picture(1));
  std::filesystem::create_directory_symlink(root + "/set/a", root + "/set/b");
  std::filesystem::create_symlink(root + "/gone.png", root + "/set/a/dangling.png");
  const auto open = [&] { return open_dataset(FileSystem::real(), spec_of(root + "/set"), {}); };
  EXPECT_EQ(open()->info().samples, 2u);
  EXPECT_THAT(open()->info().notes[0], HasSubstr("a/dangling.png"));
  std::filesystem::create_directory_symlink(root + "/set", root + "/set/a/up");
  try {
    open();
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_THAT(error.message(), HasSubstr("look for a link that leads back"));
  }
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace skytrain::data
