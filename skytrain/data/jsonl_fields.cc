#include "skytrain/data/jsonl_fields.h"

#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"

namespace skytrain::data {
namespace {

using Field = JsonlReader::Field;
using Kind = JsonlReader::Kind;

std::string in_words(const Field& field) {
  switch (field.kind) {
    case Kind::kNumber:
      return "a number";
    case Kind::kText:
      return str("the text \"", printable(field.text, 60), "\"");
    case Kind::kNumbers:
      return str("an array of ", field.count, field.count == 1 ? " number" : " numbers");
    default:
      return field.text;
  }
}

}  // namespace

const Field& need_field(const JsonlReader& reader, std::string_view key, size_t& guess) {
  const Field* const field = reader.find(key, guess);
  if (field != nullptr) return *field;
  const std::vector<std::string> keys = reader.keys();
  throw Error(ErrorKind::kData, reader.where(), str("has no key \"", printable(key), "\"", did_you_mean(key, keys)),
              keys.empty() ? "its object is empty" : "its keys: " + first_names(keys));
}

void add_label(const JsonlReader& reader, const Field& field, LabelColumn& labels) {
  const auto where = [&] { return reader.where(field); };
  if (field.kind == Kind::kText) {
    labels.add(field.text, where, LabelColumn::Written::kName);
  } else if (field.kind == Kind::kNumber) {
    labels.add(shortest_double(reader.numbers(field)[0]), where, LabelColumn::Written::kNumber);
  } else {
    refuse_field(reader, field, "a class: a whole number or a text", "");
  }
}

void refuse_field(const JsonlReader& reader, const Field& field, std::string_view expected, const std::string& hint) {
  throw Error(ErrorKind::kData, reader.where(field),
              str("key \"", printable(field.key), "\" holds ", in_words(field), ", expected ", expected), hint);
}

}  // namespace skytrain::data
