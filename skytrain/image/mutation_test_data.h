// skytrain/image/mutation_test_data.h
//
// For tests and fuzzing: files of pictures that something went wrong with.

#pragma once
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace skytrain::image {

inline uint64_t big_endian_at(const std::string& file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(file[at + i]);
  return value;
}

// Puts the CRC of each chunk of a PNG right (PNG specification, 5.3): without that, all mutations but those of the
// checksums would be found by them. Returns whether there was anything to do.
inline bool mend_checksums(std::string& png) {
  bool mended = false;
  for (size_t at = 8; at + 12 <= png.size();) {
    const uint64_t length = big_endian_at(png, at, 4);
    if (length > png.size() - at - 12) break;
    const size_t covered = static_cast<size_t>(length) + 4;
    const uint64_t crc = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + at + 4, static_cast<uInt>(covered));
    mended = mended || big_endian_at(png, at + 4 + covered, 4) != crc;
    for (size_t i = 0; i < 4; ++i) png[at + 4 + covered + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += 8 + covered;
  }
  return mended;
}

// Where the lengths of a JPEG's segments (2 bytes) and of a PNG's chunks (4 bytes) stand.
inline std::vector<size_t> lengths_in(const std::string& file) {
  std::vector<size_t> places;
  if (file.starts_with("\xff\xd8")) {
    for (size_t at = 0; at + 4 < file.size() && places.size() < 200; ++at) {
      const uint8_t marker = static_cast<uint8_t>(file[at + 1]);
      if (file[at] == '\xff' && marker >= 0xc0 && marker != 0xff && (marker < 0xd0 || marker > 0xd9)) {
        places.push_back(at + 2);
      }
    }
  } else if (file.starts_with("\x89PNG")) {
    for (size_t at = 8; at + 12 <= file.size() && places.size() < 200; at += 12 + big_endian_at(file, at, 4)) {
      places.push_back(at);
    }
  }
  return places;
}

// A copy of `file` with some bits flipped, its end cut off, runs of bytes overwritten, a piece of `other` put in, or
// the length of a segment changed. Of PNGs every other one has right checksums. Not empty unless `file` is.
inline std::string mutated(const std::string& file, const std::string& other, std::mt19937& random) {
  std::string out = file;
  const auto draw = [&](size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random()) % bound; };
  // Headers are short, and most of what can go wrong is in them.
  const auto place = [&] { return draw(2) == 0 ? draw(std::min<size_t>(out.size(), 1024)) : draw(out.size()); };
  if (out.empty()) return out;
  switch (draw(5)) {
    case 0:
      for (size_t n = 1 + draw(8); n > 0; --n) {
        char& byte = out[place()];
        byte = static_cast<char>(byte ^ (1 << draw(8)));
      }
      break;
    case 1:
      out.resize(1 + place());
      break;
    case 2: {
      const size_t at = place(), kind = draw(3), count = std::min(1 + draw(64), out.size() - at);
      for (size_t i = 0; i < count; ++i) {
        out[at + i] = static_cast<char>(kind == 0 ? 0 : kind == 1 ? 0xff : draw(256));
      }
      break;
    }
    case 3: {
      const size_t from = draw(other.size()), count = std::min(1 + draw(2000), other.size() - from), at = place();
      out.replace(at, draw(2) == 0 ? 0 : std::min(count, out.size() - at), other, from, count);
      break;
    }
    default: {
      const std::vector<size_t> places = lengths_in(out);
      const size_t at = places.empty() ? place() : places[draw(places.size())];
      constexpr uint8_t kExtremes[] = {0, 1, 2, 0x7f, 0x80, 0xff};
      for (size_t i = at; i < std::min(at + 2, out.size()); ++i) {
        out[i] = static_cast<char>(draw(2) == 0 ? out[i] + 1 - static_cast<int>(draw(3)) : kExtremes[draw(6)]);
      }
    }
  }
  if (out.starts_with("\x89PNG") && draw(2) == 0) mend_checksums(out);
  return out;
}

}  // namespace skytrain::image
