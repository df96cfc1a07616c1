// skytrain/recipe/codec.h
//
// How one value of a recipe is read, checked, written and described. Codecs are built from each other:
// or_auto(integer({.min = 1})) reads "auto" or a whole number from 1.

#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/recipe/reader.h"

namespace skytrain::recipe {

template <class T>
struct Codec {
  std::string type;  // for people: "integer, 1 to 256"
  // False when a problem was reported; *out is then unchanged or unspecified.
  std::function<bool(const Value&, Reader&, T* out)> read;
  std::function<OrderedJson(const T&)> write;
};

struct IntegerRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};
Codec<int64_t> integer(IntegerRange range);
Codec<uint64_t> unsigned_integer(IntegerRange range);

struct RealRange {
  double min = 0, max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is refused
  bool below_max = false;  // max itself is refused
};
Codec<double> real(RealRange range);

Codec<bool> boolean();

// Any text that `refuse` (returning what is wrong, or "") lets through.
Codec<std::string> text(std::string type, std::function<std::string(const std::string&)> refuse);
// One of `names`; what: "optimizer", for "unknown optimizer".
Codec<std::string> choice(std::string what, std::vector<std::string> names);
// A file or folder, made absolute.
Codec<std::string> path();

// A size with its unit: 512 MiB.
Codec<uint64_t> bytes();

// units: which are allowed, kSeconds last; above_zero: 0 is refused.
Codec<Duration> duration(std::vector<Duration::Unit> units, bool above_zero);

// The word for "no value" is `word` ("auto", "null").
template <class T>
Codec<std::optional<T>> optional_with(const std::string& word, Codec<T> codec) {
  const auto is_word = [word](const Value& value) {
    if (word == "null") return value.kind == Value::Kind::kNull;
    return value.kind == Value::Kind::kText && value.text == word;
  };
  return {codec.type + ", or " + word,
          [=](const Value& value, Reader& reader, std::optional<T>* out) {
            out->reset();
            if (is_word(value)) return true;
            T read{};
            if (!codec.read(value, reader, &read)) return false;
            *out = std::move(read);
            return true;
          },
          [=](const std::optional<T>& value) {
            if (value) return codec.write(*value);
            return word == "null" ? OrderedJson(nullptr) : OrderedJson(word);
          }};
}

// A list of min_size to max_size elements. one_alone: a single element may stand without brackets.
template <class T>
Codec<std::vector<T>> list_of(std::string type, size_t min_size, size_t max_size, bool one_alone, Codec<T> codec) {
  return {std::move(type),
          [=](const Value& value, Reader& reader, std::vector<T>* out) {
            out->clear();
            if (value.kind != Value::Kind::kList) {
              if (one_alone) {
                out->emplace_back();
                return codec.read(value, reader, &out->back());
              }
              reader.problem(value.place, "is " + value.describe() + ", expected a list like [1, 2]");
              return false;
            }
            if (value.items.size() < min_size || value.items.size() > max_size) {
              const std::string expected = min_size == max_size
                                               ? std::to_string(min_size)
                                               : std::to_string(min_size) + " to " + std::to_string(max_size);
              reader.problem(value.place, "has " + std::to_string(value.items.size()) +
                                              (value.items.size() == 1 ? " element" : " elements") + ", expected " +
                                              expected);
              return false;
            }
            bool ok = true;
            for (size_t i = 0; i < value.items.size(); ++i) {
              const Reader::Scope scope(reader, "[" + std::to_string(i) + "]");
              T item{};
              ok = codec.read(value.items[i], reader, &item) && ok;
              out->push_back(std::move(item));
            }
            return ok;
          },
          [=](const std::vector<T>& values) {
            OrderedJson out = OrderedJson::array();
            for (const T& value : values) out.push_back(codec.write(value));
            return out;
          }};
}

}  // namespace skytrain::recipe
