#include "skytrain/image/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::image {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Decoded {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

Decoded decode(std::string_view file) {
  // A copy of exactly this size, so that AddressSanitizer sees a step beyond it.
  const std::vector<uint8_t> encoded(file.begin(), file.end());
  Scratch scratch;
  const Picture picture = decode_picture(encoded, "/p/x", scratch);
  return {picture.width, picture.height, {picture.pixels, picture.pixels + 3 * picture.width * picture.height}};
}

std::string refusal(std::string_view file, ErrorKind kind = ErrorKind::kData) {
  try {
    decode(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.message();
    EXPECT_EQ(error.where(), "/p/x");
    EXPECT_EQ(error.problem().find('\n'), std::string::npos);
    return error.message();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

// Mean of the differences of two pictures of the same size.
double difference(const std::vector<uint8_t>& a, std::string_view b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::abs(a[i] - static_cast<uint8_t>(b[i]));
  return sum / static_cast<double>(a.size());
}

TEST(Picture, DecodesAsPillowDoes) {
  const std::string folder = "tests/testdata/pictures/";
  const FileSystem& fs = FileSystem::real();
  for (const std::string name :
       {"photo.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg", "rgba.png", "grey_alpha.png", "palette.png"}) {
    const Decoded ours = decode(fs.read_file(folder + name));
    const Decoded pillows = decode(fs.read_file(folder + name.substr(0, name.rfind('.')) + ".rgb.png"));
    EXPECT_EQ(ours.width, pillows.width) << name;
    EXPECT_EQ(ours.height, pillows.height) << name;
    ASSERT_EQ(ours.pixels.size(), pillows.pixels.size()) << name;
    for (size_t i = 0; i < ours.pixels.size(); ++i) {
      // Equal with the libjpeg-turbo of today; another may round otherwise in its conversions.
      ASSERT_NEAR(ours.pixels[i], pillows.pixels[i], 1) << name << ", byte " << i;
    }
  }
}

// A palette with transparency decoded to RGB mixed alpha into colours and overran the buffer.
TEST(Png, PaletteWithTransparencyGivesItsColours) {
  const std::vector<png_color> palette = {{17, 34, 51}, {68, 85, 102}, {1, 2, 3}, {250, 251, 252}};
  for (const int depth : {1, 2, 4, 8}) {
    const std::string line =
        depth == 8 ? std::string("\0\1", 2) : std::string(1, static_cast<char>(1 << (8 - 2 * depth)));
    PngOptions options{.type = PNG_COLOR_TYPE_PALETTE, .depth = depth, .palette = palette, .transparency = {0, 128}};
    if (depth == 1) options.palette.resize(2);
    for (const bool interlaced : {false, true}) {
      options.interlaced = interlaced;
      const Decoded two = decode(encode_png(2, 1, line, options));
      EXPECT_EQ(two.width, 2);
      EXPECT_EQ(two.height, 1);
      EXPECT_THAT(two.pixels, ElementsAre(17, 34, 51, 68, 85, 102)) << depth << " bits";
    }
  }
}

TEST(Png, TransparencyIsDropped) {
  const PngOptions rgba{.type = PNG_COLOR_TYPE_RGBA}, grey_alpha{.type = PNG_COLOR_TYPE_GRAY_ALPHA};
  EXPECT_THAT(decode(encode_png(2, 1, {10, 20, 30, 0, 40, 50, 60, 7}, rgba)).pixels,
              ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(decode(encode_png(2, 1, {10, 0, 20, 99}, grey_alpha)).pixels, ElementsAre(10, 10, 10, 20, 20, 20));
  const PngOptions rgb{.transparent_colour = true}, grey{.type = PNG_COLOR_TYPE_GRAY, .transparent_colour = true};
  EXPECT_THAT(decode(encode_png(2, 1, {0, 0, 0, 1, 2, 3}, rgb)).pixels, ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(decode(encode_png(2, 1, {0, 5}, grey)).pixels, ElementsAre(0, 0, 0, 5, 5, 5));
}

TEST(Png, GreyOfAnyDepthBecomesRgb) {
  const auto grey = [](int depth, int64_t width, const std::string& line) {
    return decode(encode_png(width, 1, line, {.type = PNG_COLOR_TYPE_GRAY, .depth = depth})).pixels;
  };
  EXPECT_THAT(grey(1, 2, "\x40"), ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(grey(2, 2, "\x60"), ElementsAre(85, 85, 85, 170, 170, 170));
  EXPECT_THAT(grey(4, 2, "\x1f"), ElementsAre(17, 17, 17, 255, 255, 255));
  EXPECT_THAT(grey(8, 1, "\x42"), ElementsAre(0x42, 0x42, 0x42));
  EXPECT_THAT(grey(16, 1, "\x42\xff"), ElementsAre(0x42, 0x42, 0x42));
}

TEST(Png, SixteenBitsKeepTheUpperEight) {
  EXPECT_THAT(decode(encode_png(1, 1, "\x10\xff\x20\x80\x30\x7f", {.depth = 16})).pixels,
              ElementsAre(0x10, 0x20, 0x30));
}

TEST(Png, InterlacedIsTheSame) {
  const std::string pixels = ramp(13 * 11 * 3);
  EXPECT_EQ(decode(encode_png(13, 11, pixels, {.interlaced = true})).pixels, decode(encode_png(13, 11, pixels)).pixels);
  EXPECT_EQ(difference(decode(encode_png(13, 11, pixels)).pixels, pixels), 0);
}

TEST(Png, EachCutIsTruncated) {
  for (const bool interlaced : {false, true}) {
    const std::string whole = encode_png(13, 11, ramp(13 * 11 * 3), {.interlaced = interlaced});
    for (size_t size = 8; size < whole.size(); ++size) {
      ASSERT_THAT(refusal(std::string_view(whole).substr(0, size)), HasSubstr("is a truncated PNG picture"))
          << size << " of " << whole.size();
    }
  }
}

TEST(Png, EachChangedByteOfThePixelsIsNoticed) {
  const std::string whole = encode_png(13, 11, ramp(13 * 11 * 3));
  for (size_t at = whole.find("IDAT"); at < whole.find("IEND") - 4; ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    ASSERT_THAT(refusal(bytes), HasSubstr("PNG picture: ")) << "byte " << at;
  }
}

TEST(Png, BytesAfterTheEndDoNoHarm) {
  const std::string whole = encode_png(3, 2, ramp(18));
  EXPECT_EQ(decode(whole + "trailing").pixels, decode(whole).pixels);
}

std::string big_endian(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

// With the size of the header changed, and its checksum made right again.
std::string with_png_size(std::string file, uint32_t width, uint32_t height) {
  file.replace(16, 8, big_endian(width) + big_endian(height));
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(file.data() + 12), 17);
  return file.replace(29, 4, big_endian(static_cast<uint32_t>(sum)));
}

// A header is a few bytes that anyone can write: it may not make the reader allocate.
TEST(Png, AbsurdSizesAreRefusedBeforeAllocation) {
  const std::string small = encode_png(4, 4, ramp(48));
  EXPECT_THAT(refusal(with_png_size(small, 16385, 1)), HasSubstr("has 16385 x 1 pixels, the limit is 16384 a side"));
  EXPECT_THAT(refusal(with_png_size(small, 16384, 16384)), HasSubstr("200 million in all"));
  EXPECT_THAT(refusal(with_png_size(small, 2000000, 2000000)), HasSubstr("the limit is"));
  EXPECT_THAT(refusal(with_png_size(small, 16000, 12000)),
              HasSubstr(str("announces 16000 x 12000 pixels, which a file of ", small.size(), " bytes cannot hold")));
  EXPECT_THAT(refusal(with_png_size(small, 0, 4)), HasSubstr("is a damaged PNG picture"));
}

TEST(Png, CompressedTextsAreNotUnpacked) {
  std::string bomb(size_t{64} << 20, 'a'), packed(size_t{1} << 20, '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(bomb.data()),
                     bomb.size()),
            Z_OK);
  const std::string content = "zTXtkey" + std::string(2, '\0') + packed.substr(0, size);
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  const std::string whole = encode_png(3, 2, ramp(18));
  std::string with_text = whole;
  with_text.insert(whole.find("IDAT") - 4, big_endian(static_cast<uint32_t>(content.size() - 4)) + content +
                                               big_endian(static_cast<uint32_t>(sum)));
  EXPECT_EQ(decode(with_text).pixels, decode(whole).pixels);
}

TEST(Jpeg, KindsOfColourGiveRgb) {
  const std::string rgb = blocks(40, 24), grey = blocks(40, 24, 1);
  for (const bool progressive : {false, true}) {
    for (const J_COLOR_SPACE space : {JCS_YCbCr, JCS_RGB}) {
      const Decoded decoded = decode(encode_jpeg(40, 24, rgb, {.to = space, .progressive = progressive}));
      EXPECT_EQ(decoded.width, 40);
      EXPECT_EQ(decoded.height, 24);
      EXPECT_LT(difference(decoded.pixels, rgb), 2);
    }
    std::string grey_as_rgb;
    for (const char c : grey) grey_as_rgb += std::string(3, c);
    const JpegOptions options{.from = JCS_GRAYSCALE, .progressive = progressive};
    EXPECT_LT(difference(decode(encode_jpeg(40, 24, grey, options)).pixels, grey_as_rgb), 2);
  }
}

// Photoshop writes CMYK inverted: 255 is no ink. Without that, the 22 such pictures of ImageNet are negatives.
TEST(Jpeg, InvertedCmykIsMultipliedOut) {
  std::string cmyk, rgb;
  for (int i = 0; i < 16 * 16; ++i) {
    const uint8_t ink[4] = {static_cast<uint8_t>(i % 16 < 8 ? 200 : 60), 255, 40,
                            static_cast<uint8_t>(i < 128 ? 255 : 100)};
    for (const uint8_t c : ink) cmyk += static_cast<char>(c);
    for (int c = 0; c < 3; ++c) rgb += static_cast<char>((ink[c] * ink[3] + 127) / 255);
  }
  for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
    EXPECT_LT(difference(decode(encode_jpeg(16, 16, cmyk, {.from = JCS_CMYK, .to = space})).pixels, rgb), 3);
  }
}

// Phone JPEGs carry stray bytes before the end marker; strict decoders refuse what all viewers show.
TEST(Jpeg, StrayBytesAroundTheEndDoNoHarm) {
  for (const bool progressive : {false, true}) {
    const std::string whole = encode_jpeg(40, 24, blocks(40, 24), {.progressive = progressive});
    const std::vector<uint8_t> expected = decode(whole).pixels;
    const std::string body = whole.substr(0, whole.size() - 2), end = "\xff\xd9";
    EXPECT_EQ(decode(str(body, std::string(64, '\0'), end)).pixels, expected);
    EXPECT_EQ(decode(str(body, "\x12\x34\x56", end)).pixels, expected);
    EXPECT_EQ(decode(whole + "trailing\xff").pixels, expected);
    EXPECT_EQ(decode(whole + whole).pixels, expected);  // as in an MPO
  }
}

// A cut progressive JPEG trained as a black picture.
TEST(Jpeg, EachCutIsRefused) {
  for (const bool progressive : {false, true}) {
    for (const int restart : {0, 2}) {
      const std::string whole =
          encode_jpeg(40, 24, blocks(40, 24), {.progressive = progressive, .restart_interval = restart});
      // Of a baseline file the end marker alone may be missing: all of the picture is there.
      const size_t end = whole.size() - (progressive ? 1 : 2);
      for (size_t size = 3; size < end; ++size) {
        ASSERT_THAT(refusal(std::string_view(whole).substr(0, size)),
                    AllOf(StartsWith("/p/x: is a "), HasSubstr("JPEG picture")))
            << size << " of " << whole.size() << (progressive ? ", progressive" : "");
      }
      EXPECT_THAT(refusal(std::string_view(whole).substr(0, whole.size() / 2)),
                  HasSubstr("is a truncated JPEG picture"));
    }
  }
}

TEST(Jpeg, MissingPartsInTheMiddleAreRefused) {
  const std::string whole = encode_jpeg(64, 64, ramp(64 * 64 * 3, 37), {.restart_interval = 4});
  const size_t first = whole.find("\xff\xd1"), second = whole.find("\xff\xd2", first);
  ASSERT_NE(second, std::string::npos);
  std::string without = whole;
  without.erase(first, second - first);
  EXPECT_THAT(refusal(without), HasSubstr("is a damaged JPEG picture"));
  // Cut in the middle, and ended properly.
  EXPECT_THAT(refusal(whole.substr(0, whole.size() / 2) + "\xff\xd9"),
              HasSubstr("is a damaged JPEG picture: premature"));
}

// With the size in the frame header changed.
std::string with_jpeg_size(std::string file, int width, int height) {
  const size_t frame = std::min(file.find("\xff\xc0"), file.find("\xff\xc2"));
  const auto byte = [](int value, int shift) { return static_cast<char>(value >> shift); };
  return file.replace(frame + 5, 4, {byte(height, 8), byte(height, 0), byte(width, 8), byte(width, 0)});
}

TEST(Jpeg, AbsurdSizesAreRefused) {
  for (const bool progressive : {false, true}) {
    const std::string small = encode_jpeg(8, 8, blocks(8, 8), {.progressive = progressive});
    EXPECT_THAT(refusal(with_jpeg_size(small, 16385, 8)), HasSubstr("has 16385 x 8 pixels, the limit is"));
    EXPECT_THAT(refusal(with_jpeg_size(small, 65535, 65535)), HasSubstr("Maximum supported image dimension"));
    EXPECT_THAT(refusal(with_jpeg_size(small, 16384, 12000)), HasSubstr("JPEG picture"));
    EXPECT_THAT(refusal(with_jpeg_size(small, 0, 8)), HasSubstr("is a damaged JPEG picture"));
  }
}

TEST(Jpeg, KindsThatAreNotReadAreSaidToBe) {
  std::string lossless = encode_jpeg(8, 8, blocks(8, 8));
  lossless[lossless.find("\xff\xc0") + 1] = '\xc3';
  EXPECT_THAT(refusal(lossless), HasSubstr("is a JPEG picture of a kind that is not read: Unsupported JPEG process"));
  std::string twelve = encode_jpeg(8, 8, blocks(8, 8));
  twelve[twelve.find("\xff\xc0") + 4] = 12;
  EXPECT_THAT(refusal(twelve), HasSubstr("of a kind that is not read: "));
}

// Each scan of a progressive file goes over the whole picture: thousands of tiny ones would take minutes.
TEST(Jpeg, ThousandsOfScansAreRefused) {
  const std::string whole = encode_jpeg(64, 64, blocks(64, 64, 1), {.from = JCS_GRAYSCALE, .progressive = true});
  const size_t last = whole.rfind("\xff\xda");  // a refinement, which may be repeated
  std::string bomb = whole.substr(0, last);
  const std::string scan = whole.substr(last, whole.size() - 2 - last);
  for (int i = 0; i < 2000; ++i) bomb += scan;
  EXPECT_THAT(refusal(bomb + "\xff\xd9"), HasSubstr("more than 500 scans"));
}

TEST(Picture, ContentDecidesAndWhatIsNoneIsDescribed) {
  EXPECT_THAT(refusal(""), HasSubstr("/p/x: is empty (0 bytes)"));
  EXPECT_THAT(refusal("GIF89a\1\1"), HasSubstr("is no JPEG or PNG picture: it is a GIF image"));
  EXPECT_THAT(refusal("RIFF\4\1\1\1WEBPVP8 "), HasSubstr("it is a WebP image"));
  EXPECT_THAT(refusal("<html>Not found</html>"), HasSubstr("it looks like HTML"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(refusal(std::string(100, '\0')), HasSubstr("it starts with 0x00 0x00"));
}

TEST(Picture, MutatedFilesDecodeOrAreRefused) {
  const uint32_t seed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](size_t bound) { return bound == 0 ? 0 : random() % bound; };
  const std::vector<std::string> originals = {
      encode_jpeg(40, 24, ramp(40 * 24 * 3, 37)),
      encode_jpeg(40, 24, ramp(40 * 24 * 3, 37), {.progressive = true}),
      encode_jpeg(24, 24, ramp(24 * 24 * 4, 37), {.from = JCS_CMYK, .to = JCS_YCCK, .restart_interval = 2}),
      encode_png(13, 11, ramp(13 * 11 * 3), {.interlaced = true}),
      encode_png(16, 4, ramp(16 * 2 * 4),
                 {.type = PNG_COLOR_TYPE_PALETTE, .depth = 4, .palette = {{1, 2, 3}, {4, 5, 6}}, .transparency = {9}}),
  };
  int decoded = 0, refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = originals[static_cast<size_t>(i) % originals.size()];
    for (size_t n = 1 + draw(3); n > 0; --n) {
      const size_t at = draw(bytes.size());
      switch (draw(4)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(8)));
          break;
        case 1:
          bytes[at] = static_cast<char>(draw(256));
          break;
        case 2:
          bytes.insert(at, bytes.substr(draw(bytes.size()), draw(40)));
          break;
        default:
          bytes.erase(at, 1 + draw(8));
          break;
      }
    }
    try {
      const Decoded picture = decode(bytes);
      EXPECT_EQ(picture.pixels.size(), static_cast<size_t>(3 * picture.width * picture.height));
      ++decoded;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_EQ(error.where(), "/p/x");
      ++refused;
    }
  }
  EXPECT_GT(decoded, 50);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace skytrain::image
