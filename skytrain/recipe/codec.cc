#include "skytrain/recipe/codec.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "skytrain/base/text.h"
#include "skytrain/recipe/scalar.h"

namespace skytrain::recipe {
namespace {

// False (with a problem) unless `value` is a text that is not in quotes.
bool expect_plain(const Value& value, Reader& reader, const std::string& expected) {
  if (value.kind == Value::Kind::kNull) {
    reader.problem(value.place, "has no value, expected " + expected);
  } else if (value.kind != Value::Kind::kText) {
    reader.problem(value.place, "is " + value.describe() + ", expected " + expected);
  } else if (value.quoted) {
    reader.problem(value.place, "is the text " + value.describe() + ", expected " + expected, "remove the quotes");
  } else {
    return true;
  }
  return false;
}

bool expect_text(const Value& value, Reader& reader, const std::string& expected) {
  if (value.kind == Value::Kind::kText) return true;
  if (value.kind == Value::Kind::kNull) {
    reader.problem(value.place, "has no value, expected " + expected);
  } else {
    reader.problem(value.place, "is " + value.describe() + ", expected " + expected);
  }
  return false;
}

bool report(const std::optional<Refusal>& refusal, const Value& value, Reader& reader) {
  if (!refusal) return true;
  reader.problem(value.place, refusal->what, refusal->hint);
  return false;
}

std::string range_text(const IntegerRange& range) {
  if (range.max == std::numeric_limits<int64_t>::max()) return str(range.min, " or more");
  if (range.min == range.max) return str(range.min);
  return str(range.min, " to ", human_count(static_cast<double>(range.max)));
}

std::string range_text(const RealRange& range) {
  const std::string low = str(range.above_min ? "> " : ">= ", shortest_double(range.min));
  if (std::isinf(range.max)) return low;
  return low + str(range.below_max ? " and < " : " and <= ", shortest_double(range.max));
}

bool read_integer_in(const Value& value, Reader& reader, const IntegerRange& range, int64_t* out) {
  if (!expect_plain(value, reader, "a whole number")) return false;
  if (!report(read_integer(value.text, out), value, reader)) return false;
  if (*out >= range.min && *out <= range.max) return true;
  reader.problem(value.place, str("is ", *out, ", expected ", range_text(range)));
  return false;
}

const char* unit_name(Duration::Unit unit) {
  switch (unit) {
    case Duration::Unit::kSteps:
      return "steps";
    case Duration::Unit::kSamples:
      return "samples";
    case Duration::Unit::kEpochs:
      return "epochs";
    case Duration::Unit::kPercent:
      return "%";
    case Duration::Unit::kSeconds:
      return "s";
  }
  return "";
}

}  // namespace

Codec<int64_t> integer(IntegerRange range) {
  return {"integer, " + range_text(range),
          [=](const Value& value, Reader& reader, int64_t* out) { return read_integer_in(value, reader, range, out); },
          [](const int64_t& value) { return OrderedJson(value); }};
}

Codec<uint64_t> unsigned_integer(IntegerRange range) {
  return {"integer, " + range_text(range),
          [=](const Value& value, Reader& reader, uint64_t* out) {
            int64_t read = 0;
            if (!read_integer_in(value, reader, range, &read)) return false;
            *out = static_cast<uint64_t>(read);
            return true;
          },
          [](const uint64_t& value) { return OrderedJson(value); }};
}

Codec<double> real(RealRange range) {
  return {"number, " + range_text(range),
          [=](const Value& value, Reader& reader, double* out) {
            if (!expect_plain(value, reader, "a number")) return false;
            if (!report(read_real(value.text, out), value, reader)) return false;
            const bool low = range.above_min ? *out > range.min : *out >= range.min;
            const bool high = range.below_max ? *out < range.max : *out <= range.max;
            if (low && high) return true;
            reader.problem(value.place, str("is ", shortest_double(*out), ", expected ", range_text(range)));
            return false;
          },
          [](const double& value) { return OrderedJson(value); }};
}

Codec<bool> boolean() {
  return {"true or false",
          [](const Value& value, Reader& reader, bool* out) {
            return expect_plain(value, reader, "true or false") && report(read_boolean(value.text, out), value, reader);
          },
          [](const bool& value) { return OrderedJson(value); }};
}

Codec<std::string> text(std::string type, std::function<std::string(const std::string&)> refuse) {
  return {std::move(type),
          [=](const Value& value, Reader& reader, std::string* out) {
            if (!expect_text(value, reader, "a text")) return false;
            if (const std::string why = refuse(value.text); !why.empty()) {
              reader.problem(value.place, value.describe() + " " + why);
              return false;
            }
            *out = value.text;
            return true;
          },
          [](const std::string& value) { return OrderedJson(value); }};
}

Codec<std::string> choice(std::string what, std::vector<std::string> names) {
  return {join(names, ", "),
          [=](const Value& value, Reader& reader, std::string* out) {
            if (!expect_text(value, reader, "one of " + join(names, ", "))) return false;
            if (std::find(names.begin(), names.end(), value.text) == names.end()) {
              reader.problem(value.place, "unknown " + what + " " + value.describe() + did_you_mean(value.text, names),
                             "known: " + join(names, ", "));
              return false;
            }
            *out = value.text;
            return true;
          },
          [](const std::string& value) { return OrderedJson(value); }};
}

Codec<std::string> path() {
  return {
      "path",
      [](const Value& value, Reader& reader, std::string* out) {
        if (!expect_text(value, reader, "a path")) return false;
        if (value.text.empty()) {
          reader.problem(value.place, "is empty, expected a path");
          return false;
        }
        std::filesystem::path full = value.text;
        if (value.place.source == Place::Source::kFile) full = reader.sources().base_folder / full;
        *out = std::filesystem::absolute(full).lexically_normal().string();
        if (invalid_utf8_at(*out) != std::string::npos) {  // it comes from the folder, the recipe's text was checked
          reader.problem(value.place, "leads to \"" + printable(*out) + "\", which is not UTF-8",
                         "rename the folder: the run's records are UTF-8 text");
          return false;
        }
        if (out->size() > 1 && out->back() == '/') out->pop_back();
        return true;
      },
      [](const std::string& value) { return OrderedJson(value); }};
}

Codec<uint64_t> bytes() {
  return {"size with its unit, like 512 MiB",
          [](const Value& value, Reader& reader, uint64_t* out) {
            return expect_text(value, reader, "a size with its unit, like 512 MiB") &&
                   report(read_bytes(value.text, out), value, reader);
          },
          [](const uint64_t& value) { return OrderedJson(bytes_text(value)); }};
}

Codec<Duration> duration(std::vector<Duration::Unit> units, bool above_zero) {
  std::vector<std::string> names;
  for (const Duration::Unit unit : units) names.push_back(unit_name(unit));
  if (names.back() == "s") names.insert(names.end(), {"min", "h", "d"});
  const std::string known = join(names, ", ");
  return {"amount in " + known,
          [=](const Value& value, Reader& reader, Duration* out) {
            if (!expect_text(value, reader, "an amount with its unit, like 500 steps")) return false;
            Duration read;
            if (!report(read_duration(value.text, names, &read), value, reader)) return false;
            const auto complain = [&](const std::string& why) {
              reader.problem(value.place, value.describe() + " " + why, "known here: " + known);
              return false;
            };
            if (std::find(units.begin(), units.end(), read.unit) == units.end())
              return complain("has a unit that is not for this key");
            if (read.unit == Duration::Unit::kPercent && read.value > 100)
              return complain("is more than the whole run");
            if (above_zero && read.value == 0) return complain("is zero");
            *out = read;
            return true;
          },
          [](const Duration& value) { return OrderedJson(to_string(value)); }};
}

}  // namespace skytrain::recipe
