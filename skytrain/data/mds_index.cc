#include "skytrain/data/mds_index.h"

#include <algorithm>
#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"

namespace skytrain::data {
namespace {

// Bytes of a value; 0: it varies (docs of streaming.base.format.mds.encodings).
struct Encoding {
  std::string_view name;
  uint32_t size;
};
constexpr Encoding kIntegers[] = {{"int", 8},   {"int8", 1},   {"int16", 2},  {"int32", 4}, {"int64", 8},
                                  {"uint8", 1}, {"uint16", 2}, {"uint32", 4}, {"uint64", 8}};
constexpr Encoding kOthers[] = {{"float16", 2},    {"float32", 4},   {"float64", 8},     {"bytes", 0}, {"str", 0},
                                {"str_int", 0},    {"str_float", 0}, {"str_decimal", 0}, {"pil", 0},   {"jpeg", 0},
                                {"jpeg_array", 0}, {"jpegarray", 0}, {"png", 0},         {"json", 0},  {"list[pil]", 0},
                                {"list[jpeg]", 0}, {"list[png]", 0}};
constexpr std::string_view kPictures[] = {"jpeg", "png", "jpeg_array", "jpegarray"};
constexpr std::string_view kPictureNames[] = {"image", "img", "jpg", "jpeg", "png", "picture", "x"};
constexpr std::string_view kLabelNames[] = {"label", "class", "cls", "target", "y"};

template <size_t size>
bool is_one_of(std::string_view word, const std::string_view (&words)[size]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

template <size_t size>
const Encoding* find(std::string_view name, const Encoding (&encodings)[size]) {
  const auto it = std::find_if(std::begin(encodings), std::end(encodings), [&](auto& e) { return e.name == name; });
  return it == std::end(encodings) ? nullptr : it;
}

// "jpeg" of "jpeg:95".
std::string_view plain(std::string_view encoding) { return encoding.substr(0, encoding.find(':')); }

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  MdsIndex read(std::string_view text) {
    // Of a large set's index, the values would take ten times the text's memory.
    const Json json = parse_json(text, path_, "shards",
                                 [this](uint64_t i, const Json& shard) { read_shard(shard, str("shards[", i, "]")); });
    if (!json.is_object()) refuse("", "is no JSON object");
    check_version(json, "");
    array(json, "", "shards");
    if (index_.shards.empty()) refuse("shards", "is empty: the data set has no samples", "write the data set again");
    choose_columns();
    return std::move(index_);
  }

 private:
  [[noreturn]] void refuse(const std::string& place, const std::string& what, const std::string& hint = "") const {
    throw Error(ErrorKind::kData, path_, place.empty() ? what : place + ": " + what, hint);
  }

  static std::string below(const std::string& place, const char* key) {
    return place.empty() ? key : str(place, ".", key);
  }

  const Json& value(const Json& object, const std::string& place, const char* key) const {
    if (!object.is_object()) refuse(place, "is no object");
    const auto it = object.find(key);
    if (it == object.end()) refuse(below(place, key), "is missing");
    return *it;
  }
  const Json& array(const Json& object, const std::string& place, const char* key) const {
    const Json& found = value(object, place, key);
    if (!found.is_array()) refuse(below(place, key), "is no array");
    return found;
  }
  uint64_t number(const Json& object, const std::string& place, const char* key) const {
    const Json& found = value(object, place, key);
    if (!found.is_number_unsigned()) refuse(below(place, key), "is no whole number from 0");
    return found.get<uint64_t>();
  }
  std::string text(const Json& found, const std::string& place) const {
    if (!found.is_string()) refuse(place, "is no text");
    return found.get<std::string>();
  }

  void check_version(const Json& object, const std::string& place) const {
    const uint64_t version = number(object, place, "version");
    if (version != 2) {
      refuse(below(place, "version"), str("is ", version, ", and 2 is what can be read"),
             "write the data set with a release of mosaicml-streaming that writes version 2");
    }
  }

  void read_shard(const Json& json, const std::string& place) {
    check_version(json, place);
    const std::string format = text(value(json, place, "format"), below(place, "format"));
    if (format != "mds") {
      refuse(below(place, "format"), str("is \"", printable(format), "\", and mds is what can be read"));
    }
    read_columns(json, place);
    MdsShard shard;
    shard.samples = number(json, place, "samples");
    if (shard.samples > UINT32_MAX / 4) refuse(below(place, "samples"), "is too large");
    shard.raw = read_file(value(json, place, "raw_data"), below(place, "raw_data"));
    if (shard.raw.bytes > UINT32_MAX)
      refuse(below(place, "raw_data.bytes"), "is 4 GiB or more, whose offsets have 32 bits");
    const auto compression = json.find("compression");
    const auto packed = json.find("zip_data");
    if (compression != json.end() && !compression->is_null()) {
      const std::string name = text(*compression, below(place, "compression"));
      if (plain(name) != "zstd") {
        refuse(below(place, "compression"), str("is \"", printable(name), "\", and zstd is what can be read"),
               "write the data set without compression: pictures hardly shrink");
      }
      if (packed == json.end() || packed->is_null()) refuse(below(place, "zip_data"), "is missing");
      shard.packed = read_file(*packed, below(place, "zip_data"));
    }
    index_.shards.push_back(std::move(shard));
  }

  MdsFile read_file(const Json& json, const std::string& place) {
    MdsFile file;
    file.name = text(value(json, place, "basename"), below(place, "basename"));
    check_name(file.name, below(place, "basename"));
    file.bytes = number(json, place, "bytes");
    const auto hashes = json.find("hashes");
    if (hashes == json.end() || hashes->is_null()) return file;
    if (!hashes->is_object()) refuse(below(place, "hashes"), "is no object");
    for (const auto& [kind, hash] : hashes->items()) {
      file.hashes[kind] = text(hash, below(place, "hashes") + "." + printable(kind));
    }
    return file;
  }

  void check_name(const std::string& name, const std::string& place) {
    bool inside = !name.empty() && name.front() != '/' && name.find('\0') == std::string::npos;
    for (size_t begin = 0; inside && begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      const std::string_view part = std::string_view(name).substr(begin, end - begin);
      inside = !part.empty() && part != "." && part != "..";
      begin = end + 1;
    }
    if (!inside) {
      refuse(place, str("\"", printable(name), "\" is no file within the folder of the data set"),
             "shards lie beside index.json or in folders there");
    }
    if (!names_.insert(name).second) refuse(place, str("\"", printable(name), "\" is named twice"));
  }

  void read_columns(const Json& json, const std::string& place) {
    const Json& names = array(json, place, "column_names");
    const Json& encodings = array(json, place, "column_encodings");
    const Json& sizes = array(json, place, "column_sizes");
    if (names.size() != encodings.size() || names.size() != sizes.size()) {
      refuse(place, str("has ", names.size(), " column_names, ", encodings.size(), " column_encodings and ",
                        sizes.size(), " column_sizes"));
    }
    if (!index_.shards.empty() && names == names_of_columns_ && encodings == encodings_ && sizes == sizes_) return;
    std::vector<MdsColumn> columns;
    for (size_t c = 0; c < names.size(); ++c) {
      MdsColumn column;
      column.name = text(names[c], str(place, ".column_names[", c, "]"));
      column.encoding = text(encodings[c], str(place, ".column_encodings[", c, "]"));
      if (!sizes[c].is_null()) {
        if (!sizes[c].is_number_unsigned() || sizes[c] == 0u || sizes[c] > UINT32_MAX) {
          refuse(str(place, ".column_sizes[", c, "]"), "is no number of bytes");
        }
        column.size = sizes[c].get<uint32_t>();
      }
      check_encoding(column, str(place, ".column_encodings[", c, "]"));
      for (const MdsColumn& other : columns) {
        if (other.name == column.name) refuse(below(place, "column_names"), "names a column twice");
      }
      columns.push_back(std::move(column));
    }
    const auto equal = [](const MdsColumn& a, const MdsColumn& b) {
      return a.name == b.name && plain(a.encoding) == plain(b.encoding) && a.size == b.size;
    };
    if (index_.shards.empty()) {
      index_.columns = std::move(columns);
      names_of_columns_ = names;
      encodings_ = encodings;
      sizes_ = sizes;
    } else if (!std::equal(columns.begin(), columns.end(), index_.columns.begin(), index_.columns.end(), equal)) {
      refuse(place, "has other columns than the first shard", "these are data sets of their own");
    }
  }

  void check_encoding(const MdsColumn& column, const std::string& place) const {
    const std::string_view name = plain(column.encoding);
    const std::string of = str("of column \"", printable(column.name), "\" is \"", printable(column.encoding), "\"");
    if (name == "pkl") {
      refuse(place, of + ": pickled objects run code when they are read, and are not read",
             "write the data set with another encoding for this column, or without it");
    }
    if (name == "ndarray") return;
    const Encoding* encoding = find(name, kIntegers);
    if (encoding == nullptr) encoding = find(name, kOthers);
    if (encoding == nullptr) refuse(place, of + ", which is not known");
    if (column.size.value_or(0) != encoding->size) {
      refuse(place, str(of, ", whose values have ",
                        encoding->size == 0 ? std::string("no fixed size") : str(encoding->size, " bytes"),
                        ", and column_sizes says otherwise"));
    }
  }

  // The first of `names` that is among `candidates`.
  template <size_t size>
  std::optional<size_t> by_name(const std::vector<size_t>& candidates, const std::string_view (&names)[size]) const {
    for (const std::string_view name : names) {
      for (const size_t c : candidates) {
        if (index_.columns[c].name == name) return c;
      }
    }
    return std::nullopt;
  }

  void choose_columns() {
    std::vector<size_t> pictures, bytes, integers;
    std::vector<std::string> all;
    for (size_t c = 0; c < index_.columns.size(); ++c) {
      const MdsColumn& column = index_.columns[c];
      if (is_one_of(plain(column.encoding), kPictures)) pictures.push_back(c);
      if (column.encoding == "bytes") bytes.push_back(c);
      if (find(column.encoding, kIntegers) != nullptr) integers.push_back(c);
      all.push_back(printable(column.name, 60) + " (" + printable(column.encoding, 60) + ")");
    }
    const std::string columns = "its columns: " + join(all, ", ");
    std::optional<size_t> picture = pictures.size() == 1 ? pictures[0] : by_name(pictures, kPictureNames);
    if (!picture && pictures.empty()) picture = bytes.size() == 1 ? bytes[0] : by_name(bytes, kPictureNames);
    if (!picture) {
      refuse("",
             pictures.empty() && bytes.empty()
                 ? "has no column of pictures (jpeg, png or bytes)"
                 : "has several columns of pictures, and none is called image, img, jpg, jpeg, png, picture or x",
             columns);
    }
    std::optional<size_t> label = by_name(integers, kLabelNames);
    index_.label_by_name = label.has_value();
    if (!label && integers.size() == 1) label = integers[0];
    if (!label) {
      refuse("",
             integers.empty() ? "has no column of classes (int, int8 … int64, uint8 … uint64)"
                              : "has several columns of integers, and none is called label, class, cls, target or y",
             columns);
    }
    index_.picture = *picture;
    index_.label = *label;
  }

  const std::string& path_;
  MdsIndex index_;
  std::set<std::string> names_;                // of all files
  Json names_of_columns_, encodings_, sizes_;  // of the first shard: most indexes repeat them
};

}  // namespace

MdsIndex parse_mds_index(std::string_view text, const std::string& path) { return Reader(path).read(text); }

}  // namespace skytrain::data
