// skytrain/image/mutation_check_test_data.h
//
// For tests: files that something went wrong with, hundreds of each. A file is a picture or an Error that names it, it
// never takes more memory than pictures may, and its regions are those of the whole.

#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"
#include "skytrain/image/decoders.h"
#include "skytrain/image/mutation_test_data.h"
#include "skytrain/image/region_test_data.h"

namespace skytrain::image {

inline constexpr int kMutationsOfEach = 500;

// What a scratch may keep of what is looked at here: 64 MiB of each of four buffers and of libjpeg's memory.
inline constexpr size_t kMostKept = size_t{5 * 64} << 20;
// Of two scratches, each with the 600 MB of pixels that the largest pictures have which are not refused.
inline constexpr uint64_t kMostGrowth = uint64_t{1200} << 20;

struct MutationCounts {
  int decoded = 0, refused = 0;
};

class MutationCheck {
 public:
  // Each file as it is, and kMutationsOfEach of it. Returns what became of them.
  MutationCounts run(const std::map<std::string, std::string>& files) {
    const uint64_t before = peak_rss_bytes();
    MutationCounts counts;
    uint32_t seed = 0;
    auto other = files.begin();
    for (const auto& [name, file] : files) {
      std::mt19937 random(++seed);
      if (++other == files.end()) other = files.begin();
      for (int i = 0; i <= kMutationsOfEach && !::testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE(str(name, ", mutation ", i));
        check(i == 0 ? file : mutated(file, other->second, random), random, counts);
      }
    }
    EXPECT_LT(peak_rss_bytes() - before, kMostGrowth);
    return counts;
  }

 private:
  template <typename Read>
  static bool reads(const Read& read) {
    try {
      read();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_EQ(error.where(), "a/file.jpg");
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
    }
    return false;
  }

  void check(const std::string& content, std::mt19937& random, MutationCounts& counts) {
    // Exactly as long as the file, so that AddressSanitizer sees a step beyond.
    const std::vector<uint8_t> file(content.begin(), content.end());
    const std::string path = "a/file.jpg";
    Size size;
    Picture whole, part;
    const bool sized = reads([&] { size = picture_size(file, path); });
    const bool decoded = reads([&] { whole = decode_picture(file, path, scratch_); });
    ++(decoded ? counts.decoded : counts.refused);
    if (!sized) {
      EXPECT_FALSE(decoded);
      return;
    }
    const Region region = draw_region(size, random);
    // Of its own: the whole picture lies in the other.
    const bool cut = reads([&] { part = decode_region(file, path, region, part_scratch_); });
    if (decoded) {
      EXPECT_EQ(size, (Size{whole.width, whole.height}));
      EXPECT_TRUE(cut);
      for (int64_t y = 0; cut && y < region.height; ++y) {
        const uint8_t* const expected = whole.pixels + 3 * ((region.top + y) * whole.width + region.left);
        ASSERT_EQ(std::memcmp(expected, part.pixels + 3 * y * region.width, static_cast<size_t>(3 * region.width)), 0)
            << "line " << y << " of " << region.width << " x " << region.height << " at (" << region.left << ", "
            << region.top << ") of " << whole.width << " x " << whole.height;
      }
    }
    for (Scratch* scratch : {&scratch_, &part_scratch_}) {
      scratch->give_back_excess();
      size_t kept = scratch->decoders().jpeg.memory();
      for (const ByteBuffer* buffer : {&scratch->decoded, &scratch->line, &scratch->lines, &scratch->narrowed}) {
        kept += buffer->capacity();
      }
      EXPECT_LE(kept, kMostKept);
    }
  }

  Scratch scratch_, part_scratch_;
};

}  // namespace skytrain::image
