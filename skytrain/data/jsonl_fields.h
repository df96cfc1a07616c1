// skytrain/data/jsonl_fields.h
//
// What a record of a JSONL file must have, and what is wrong with it. Thread-safe.

#pragma once
#include <string>
#include <string_view>

#include "skytrain/data/jsonl_reader.h"
#include "skytrain/data/label_column.h"

namespace skytrain::data {

// The record's field of this key; guess: as JsonlReader::find(). Throws Error(kData) when there is none.
const JsonlReader::Field& need_field(const JsonlReader& reader, std::string_view key, size_t& guess);

// Adds a class: a number or a text. Throws Error(kData) when it is neither, and as LabelColumn::add().
void add_label(const JsonlReader& reader, const JsonlReader::Field& field, LabelColumn& labels);

// Throws Error(kData): `key "x" holds null: a missing value, expected a number`.
[[noreturn]] void refuse_field(const JsonlReader& reader, const JsonlReader::Field& field, std::string_view expected,
                               const std::string& hint);

}  // namespace skytrain::data
