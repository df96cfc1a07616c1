// skytrain/weights/weights_test_data.h
//
// For tests: pickles and archives put together by hand, good and bad.

#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"
#include "skytrain/weights/allocation_meter.h"
#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/weights.h"
#include "skytrain/weights/zip_writer.h"

namespace skytrain::weights::testing_data {

// Pieces of a pickle; concatenated they are its text.
namespace pickle {

inline std::string text(std::string_view text) {
  std::string out = "X";
  append_le<uint32_t>(out, static_cast<uint32_t>(text.size()));
  return out.append(text);
}
inline std::string number(int64_t value) {
  std::string out = "\x8a\x08";  // LONG1
  append_le<uint64_t>(out, static_cast<uint64_t>(value));
  return out;
}
inline std::string global(std::string_view module, std::string_view name) { return str("c", module, "\n", name, "\n"); }
inline std::string tuple(const std::vector<std::string>& items) { return "(" + join(items, "") + "t"; }
inline std::string list(const std::vector<std::string>& items) { return "](" + join(items, "") + "e"; }
inline std::string numbers(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += number(value);
  return out + "t";
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += text(key) + value;
  return out + "u";
}
inline std::string call(const std::string& callable, const std::vector<std::string>& arguments) {
  return callable + tuple(arguments) + "R";
}
inline std::string ordered_dict() { return global("collections", "OrderedDict") + ")R"; }
inline std::string storage(std::string_view type, std::string_view key, int64_t elements) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(elements)}) + "Q";
}
// As in the form before 1.6. view: a pickled value.
inline std::string legacy_storage(std::string_view type, std::string_view key, int64_t elements,
                                  const std::string& view = "N") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(elements), view}) + "Q";
}
inline std::string tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& size,
                          const std::vector<int64_t>& stride) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, number(offset), numbers(size), numbers(stride), "\x89", ordered_dict()});
}
// Six floats of storage "0".
inline std::string floats() { return tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1}); }
inline std::string whole(std::string_view value) { return str("\x80\x02", value, "."); }

}  // namespace pickle

using Members = std::vector<std::pair<std::string, std::string>>;

inline std::string zip_of(const Members& members, ZipWriter::Options options = {}) {
  MemoryFileSystem fs;
  const auto file = fs.open_write("/zip", FileSystem::Mode::kTruncate);
  ZipWriter writer(*file, options);
  for (const auto& [name, content] : members) writer.add(name, content);
  writer.finish();
  return fs.read_file("/zip");
}

inline const std::string kSixFloats(24, '\1');

// A file of torch.save: the pickle of `value`, and storages "0", "1", …
inline std::string pt(const std::string& value, const std::vector<std::string>& storages = {kSixFloats}) {
  Members members = {{"x/data.pkl", pickle::whole(value)}, {"x/byteorder", "little"}, {"x/version", "3\n"}};
  for (size_t i = 0; i < storages.size(); ++i) members.emplace_back(str("x/data/", i), storages[i]);
  return zip_of(members);
}

// The form before 1.6. tail: the pickle of the keys and what follows.
inline std::string legacy_head() {
  return pickle::whole("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + pickle::whole(pickle::number(1001)) +
         pickle::whole(pickle::dict({{"protocol_version", pickle::number(1001)}, {"little_endian", "\x88"}}));
}
inline std::string legacy_floats(uint64_t count = 6, std::string_view bytes = kSixFloats) {
  std::string out;
  append_le<uint64_t>(out, count);
  return out.append(bytes);
}
inline std::string legacy(const std::string& value, const std::string& tail) {
  return legacy_head() + pickle::whole(value) + tail;
}

inline Weights read(const std::string& bytes) {
  MemoryFileSystem fs;
  const auto file = fs.open_write("/weights.pt", FileSystem::Mode::kTruncate);
  file->append(std::string_view(bytes));
  return read_weights(fs, "/weights.pt");
}

// What is said when the file is refused: one clear line that names it, and no memory beyond its size.
inline std::string refusal(const std::string& bytes) {
  MemoryFileSystem fs;
  const auto file = fs.open_write("/weights.pt", FileSystem::Mode::kTruncate);
  file->append(std::string_view(bytes));
  const AllocationMeter meter;
  try {
    read_weights(fs, "/weights.pt");
  } catch (const Error& error) {
    EXPECT_LE(meter.peak_bytes(), 20 * bytes.size() + 256 * 1024);
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
    EXPECT_EQ(error.where(), "/weights.pt");
    EXPECT_EQ(error.problem().find('\n'), std::string::npos) << error.problem();
    EXPECT_LT(error.problem().size(), 500u) << error.problem();
    return error.problem();
  }
  ADD_FAILURE() << "was read";
  return "";
}

}  // namespace skytrain::weights::testing_data
