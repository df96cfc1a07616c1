#include "skytrain/base/checksum.h"

#include <gtest/gtest.h>

namespace skytrain {
namespace {

std::string of(std::string_view kind, std::string_view text) {
  const auto checksum = Checksum::make(kind);
  if (checksum == nullptr) return "not known";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  checksum->update(bytes.first(bytes.size() / 2));
  checksum->update(bytes.subspan(bytes.size() / 2));
  return checksum->hex();
}

// What Python's xxhash 3.6 gives.
TEST(Checksum, IsThatOfPythonsXxhash) {
  EXPECT_EQ(of("xxh32", "skytrain"), "375ff56c");
  EXPECT_EQ(of("xxh64", "skytrain"), "75a24558e57c1a68");
  EXPECT_EQ(of("xxh3_64", "skytrain"), "99250087ca26c4b4");
  EXPECT_EQ(of("xxh3_128", "skytrain"), "cbd8be09fb860dd6e3059a730c14445c");
  EXPECT_EQ(of("xxh128", "skytrain"), "cbd8be09fb860dd6e3059a730c14445c");
  EXPECT_EQ(of("xxh64", ""), "ef46db3751d8e999");
  EXPECT_EQ(of("sha1", "skytrain"), "not known");
}

}  // namespace
}  // namespace skytrain
