#include "skytrain/base/hash.h"

#include <gtest/gtest.h>

namespace skytrain {
namespace {

// As `xxhsum -H2` prints them.
TEST(Xxh128, MatchesTheReferenceProgram) {
  EXPECT_EQ(xxh128_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh128_hex("a"), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(xxh128_hex("The quick brown fox jumps over the lazy dog"), "ddd650205ca3e7fa24a1cc2e3a8a7651");
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += static_cast<char>(i % 251);
  EXPECT_EQ(xxh128_hex(thousand), "18bf41bc8229e27733ef703fb2b20ed1");
}

TEST(Xxh128, StreamingInAnyPiecesGivesTheSame) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  for (const size_t piece : {1u, 3u, 64u, 255u, 1024u, 5000u}) {
    Xxh128 hash;
    for (size_t at = 0; at < text.size(); at += piece) {
      const std::string_view part = std::string_view(text).substr(at, piece);
      hash.update(std::as_bytes(std::span(part.data(), part.size())));
    }
    EXPECT_EQ(hash.hex(), xxh128_hex(text)) << piece;
  }
}

TEST(Xxh128, ShowsOneFlippedBit) {
  std::string text(4096, 'x');
  const std::string before = xxh128_hex(text);
  text[2048] ^= 1;
  EXPECT_NE(xxh128_hex(text), before);
}

}  // namespace
}  // namespace skytrain
