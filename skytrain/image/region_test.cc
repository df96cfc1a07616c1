#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/picture_test_data.h"
#include "skytrain/image/region_test_data.h"

namespace skytrain::image {
namespace {

using ::testing::HasSubstr;

constexpr std::pair<int64_t, int64_t> kSizes[] = {{1, 1},  {1, 40},  {40, 1},  {2, 3},    {7, 9},   {16, 16},
                                                  {17, 8}, {33, 47}, {64, 64}, {131, 99}, {200, 30}};

TEST(Region, OfEachKindOfJpegIsThatOfTheWhole) {
  Scratch scratch;  // one for all: what a picture leaves behind does not show in the next
  std::mt19937 random(7);
  const std::pair<int, int> samplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}};
  for (const auto& [width, height] : kSizes) {
    for (const auto& [across, down] : samplings) {
      for (const int restart : {0, 3}) {
        for (const bool progressive : {false, true}) {
          const JpegOptions options{
              .quality = 90, .progressive = progressive, .restart_interval = restart, .across = across, .down = down};
          SCOPED_TRACE(str(width, " x ", height, ", ", across, " x ", down, ", restart ", restart,
                           progressive ? ", progressive" : ""));
          expect_regions(encode_jpeg(width, height, noise(width, height), options), 6, random, scratch);
        }
      }
    }
  }
}

TEST(Region, OfOtherColoursIsThatOfTheWhole) {
  Scratch scratch;
  std::mt19937 random(8);
  for (const auto& [width, height] : kSizes) {
    for (const bool progressive : {false, true}) {
      const JpegOptions grey{.from = JCS_GRAYSCALE, .progressive = progressive};
      expect_regions(encode_jpeg(width, height, noise(width, height, 1), grey), 6, random, scratch);
      const JpegOptions rgb{.to = JCS_RGB, .progressive = progressive};
      expect_regions(encode_jpeg(width, height, noise(width, height), rgb), 6, random, scratch);
      for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
        for (const int across : {1, 2}) {
          const JpegOptions cmyk{
              .from = JCS_CMYK, .to = space, .progressive = progressive, .across = across, .down = across};
          expect_regions(encode_jpeg(width, height, noise(width, height, 4), cmyk), 6, random, scratch);
        }
      }
    }
    for (const int across : {1, 2}) {
      const JpegOptions separate{.across = across, .down = across, .interleaved = false};
      expect_regions(encode_jpeg(width, height, noise(width, height), separate), 6, random, scratch);
      const JpegOptions arithmetic{.arithmetic = true, .across = across, .down = across};
      expect_regions(encode_jpeg(width, height, noise(width, height), arithmetic), 6, random, scratch);
    }
  }
}

TEST(Region, OfEachKindOfPngIsThatOfTheWhole) {
  Scratch scratch;
  std::mt19937 random(9);
  for (const auto& [width, height] : kSizes) {
    for (const bool interlaced : {false, true}) {
      for (const auto& [type, channels] :
           {std::pair{PNG_COLOR_TYPE_RGB, 3}, {PNG_COLOR_TYPE_GRAY, 1}, {PNG_COLOR_TYPE_RGBA, 4}}) {
        const PngOptions options{.type = type, .interlaced = interlaced};
        expect_regions(encode_png(width, height, noise(width, height, channels), options), 4, random, scratch);
      }
    }
  }
}

TEST(Region, OutsideIsABug) {
  Scratch scratch;
  const std::string file = encode_jpeg(16, 8, noise(16, 8));
  for (const Region& region : {Region{0, 0, 17, 8}, Region{0, 0, 16, 9}, Region{16, 0, 1, 1}, Region{-1, 0, 2, 2},
                               Region{0, 0, 0, 8}, Region{INT64_MAX, 0, 1, 1}}) {
    EXPECT_THROW(decode_region(bytes_of(file), "x", region, scratch), Error);
  }
}

// The lines below the region are not decoded, yet a file that was cut there does not count.
TEST(Region, EachCutIsRefusedThatTheWholeRefuses) {
  Scratch scratch;
  const Region top{0, 0, 64, 8};
  for (const std::string& whole :
       {encode_jpeg(64, 64, noise(64, 64), {.across = 2, .down = 2}),
        encode_jpeg(64, 64, noise(64, 64), {.progressive = true}), encode_png(64, 64, noise(64, 64))}) {
    decode_region(bytes_of(whole), "x", top, scratch);
    for (size_t size = 16; size < whole.size(); size += 1 + size / 40) {
      const std::string cut = whole.substr(0, size);
      EXPECT_THROW(decode_region(bytes_of(cut), "x", top, scratch), Error) << size << " of " << whole.size();
    }
  }
  // An end marker in what comes before the pixels (a small picture in EXIF) is not the file's.
  const std::string small = encode_jpeg(8, 8, noise(8, 8)), large = encode_jpeg(64, 64, noise(64, 64));
  const std::string comment = str(std::string("\xff\xfe\x04\x00", 4), small.substr(0, 1000));
  ASSERT_LT(small.size(), 1000u);
  const std::string padded = str(comment, std::string(1026 - comment.size(), '\0'));
  const std::string cut = large.substr(0, 2) + padded + large.substr(2, large.size() / 2);
  EXPECT_THROW(decode_region(bytes_of(cut), "x", top, scratch), Error);
}

// Browsers show a progressive picture whose last scans are missing, somewhat blurred: libjpeg smooths blocks with their
// neighbours, and regions had others at their edges than the whole picture.
TEST(Region, OfAPictureThatMissesScansIsThatOfTheWhole) {
  Scratch scratch;
  std::mt19937 random(13);
  const std::string whole = encode_jpeg(72, 56, noise(72, 56), {.progressive = true, .across = 2, .down = 2});
  int shorter = 0;
  for (size_t scan = whole.find("\xff\xda"); scan != std::string::npos; scan = whole.find("\xff\xda", scan + 1)) {
    if (scan == whole.find("\xff\xda")) continue;
    expect_regions(whole.substr(0, scan) + "\xff\xd9", 40, random, scratch);
    ++shorter;
  }
  EXPECT_GT(shorter, 5);
}

TEST(Region, BytesAfterTheEndDoNoHarm) {
  Scratch scratch;
  std::mt19937 random(10);
  const std::string jpeg = encode_jpeg(64, 64, noise(64, 64)), png = encode_png(64, 64, noise(64, 64));
  for (const std::string& file : {jpeg + std::string(1000, '\0'), jpeg + jpeg, png + "trailing"}) {
    expect_regions(file, 4, random, scratch);
  }
}

// The tables of one picture would decode another one that has none to something.
TEST(Region, TablesOfThePictureBeforeAreForgotten) {
  Scratch scratch;
  const std::string whole = encode_jpeg(64, 64, noise(64, 64));
  std::string without = whole;
  for (size_t at; (at = without.find("\xff\xdb")) != std::string::npos;) {
    without.erase(at, 2 + 256 * static_cast<uint8_t>(without[at + 2]) + static_cast<uint8_t>(without[at + 3]));
  }
  decode_region(bytes_of(whole), "x", {0, 0, 8, 8}, scratch);
  try {
    decode_region(bytes_of(without), "x", {0, 0, 8, 8}, scratch);
    ADD_FAILURE() << "was decoded";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("Quantization table 0x00 was not defined"));
  }
}

TEST(Region, OfMutatedFilesIsDecodedOrRefused) {
  std::mt19937 random(12);
  Scratch scratch;
  const std::vector<std::string> originals = {
      encode_jpeg(72, 56, noise(72, 56), {.across = 2, .down = 2}),
      encode_jpeg(72, 56, noise(72, 56), {.restart_interval = 3, .optimized = true}),
      encode_jpeg(72, 56, noise(72, 56), {.progressive = true}), encode_png(72, 56, noise(72, 56))};
  int decoded = 0, refused = 0;
  for (size_t i = 0; i < 2000; ++i) {
    std::string file = originals[i % originals.size()];
    for (size_t n = random() % 3 + 1; n > 0; --n) {
      const size_t at = random() % file.size();
      if (random() % 3 == 0) {
        file.erase(at, 1 + random() % 8);
      } else {
        file[at] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
      }
    }
    // Exactly as long as the file, so that AddressSanitizer sees a step beyond.
    const std::vector<uint8_t> bytes(file.begin(), file.end());
    try {
      const Size size = picture_size(bytes, "x");
      const Region region = draw_region(size, random);
      decode_region(bytes, "x", region, scratch);
      ++decoded;
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kData) << error.message();
      ++refused;
    }
  }
  EXPECT_GT(decoded, 100);
  EXPECT_GT(refused, 300);
}

TEST(PictureSize, IsThatOfThePicture) {
  Scratch scratch;
  for (const std::string& file :
       {encode_jpeg(19, 70, noise(19, 70)), encode_jpeg(70, 19, noise(70, 19), {.progressive = true}),
        encode_png(33, 5, noise(33, 5)),
        encode_jpeg(8, 8, noise(8, 8, 1), {.from = JCS_GRAYSCALE, .arithmetic = true})}) {
    const Picture picture = decode_picture(bytes_of(file), "x", scratch);
    EXPECT_EQ(picture_size(bytes_of(file), "x"), (Size{picture.width, picture.height}));
    for (size_t size = 0; size < file.size(); ++size) {
      try {
        EXPECT_EQ(picture_size(bytes_of(file).first(size), "x"), (Size{picture.width, picture.height}));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData);
      }
    }
  }
}

}  // namespace
}  // namespace skytrain::image
