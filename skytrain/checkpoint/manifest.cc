#include "skytrain/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"

namespace skytrain::checkpoint {
namespace {

constexpr char kFormatName[] = "skytrain-checkpoint";
// The last member: the hash of every byte before this text. So a flipped bit anywhere in the manifest is found.
constexpr std::string_view kSealBefore = ",\n  \"manifest_xxh128\": \"";
constexpr std::string_view kSealAfter = "\"\n}\n";
constexpr size_t kHexDigits = 32;

// A decimal number without sign and leading zeros.
std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return value;
}

std::string eight_digits(uint64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return digits;
}

// A decimal number with any number of leading zeros.
std::optional<uint64_t> parse_digits(std::string_view text) {
  while (text.size() > 1 && text[0] == '0') text.remove_prefix(1);
  return parse_number(text);
}

const std::string kStep = "step-", kGeneration = "generation-", kJson = ".json";

struct RankAndCount {
  uint64_t rank, of;
};

// Accepts exactly what rank_file_name gives: no folder, no "..", nothing that another reader may take differently.
std::optional<RankAndCount> parse_rank_file_name(std::string_view name) {
  constexpr std::string_view kPrefix = "rank-", kMiddle = "-of-", kSuffix = ".safetensors";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.size() < kSuffix.size()) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const size_t middle = name.find(kMiddle);
  if (middle == std::string_view::npos) return std::nullopt;
  const auto rank = parse_number(name.substr(0, middle)), of = parse_number(name.substr(middle + kMiddle.size()));
  if (!rank || !of || *rank >= *of) return std::nullopt;
  return RankAndCount{*rank, *of};
}

// Typed access to a member, with an error that names it.
class Members {
 public:
  Members(const Json& object, const std::string& where, std::string prefix)
      : object_(object), where_(where), prefix_(std::move(prefix)) {
    if (!object.is_object()) refuse(prefix_.empty() ? "is not a JSON object" : prefix_ + " is not a JSON object");
  }
  const Json& get(const char* key) const {
    const auto it = object_.find(key);
    if (it == object_.end()) refuse(str("has no ", prefix_, key));
    return *it;
  }
  uint64_t number(const char* key) const {
    const Json& value = get(key);
    if (!value.is_number_unsigned()) refuse(str(prefix_, key, " is not a non-negative integer"));
    return value.get<uint64_t>();
  }
  const std::string& text(const char* key) const {
    const Json& value = get(key);
    if (!value.is_string()) refuse(str(prefix_, key, " is not a string"));
    return value.get_ref<const std::string&>();
  }
  [[noreturn]] void refuse(const std::string& what) const { throw Error(ErrorKind::kData, where_, what); }

 private:
  const Json& object_;
  const std::string& where_;
  const std::string prefix_;
};

void check_seal(std::string_view text, const std::string& where) {
  const size_t seal = kSealBefore.size() + kHexDigits + kSealAfter.size();
  if (text.size() > seal) {
    const std::string_view body = text.substr(0, text.size() - seal);
    if (text.substr(body.size()) == str(kSealBefore, xxh128_hex(body), kSealAfter)) return;
  }
  throw Error(ErrorKind::kData, where, "is damaged or was edited: it does not match its own hash (manifest_xxh128)");
}

// One file a rank, each rank once.
void check_files(const std::vector<Manifest::File>& files, const std::string& where) {
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::kData, where, what); };
  if (files.empty()) refuse("names no files");
  std::set<uint64_t> ranks;
  for (const Manifest::File& file : files) {
    const auto name = parse_rank_file_name(file.name);
    if (!name) {
      refuse(
          str("names a file \"", printable(file.name), "\", expected rank-<r>-of-<w>.safetensors in the same folder"));
    }
    if (name->of != files.size()) refuse(str("names ", files.size(), " files, but one is called ", file.name));
    if (!ranks.insert(name->rank).second) refuse(str("names ", file.name, " twice"));
    const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (file.xxh128.size() != kHexDigits || !std::all_of(file.xxh128.begin(), file.xxh128.end(), hex)) {
      refuse(str("has an xxh128 of ", file.name, " that is not 32 hexadecimal digits"));
    }
  }
}

}  // namespace

std::string checkpoint_name(uint64_t step) { return kStep + eight_digits(step); }

std::optional<uint64_t> step_from_name(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  return parse_digits(name.substr(kStep.size()));
}

std::string generation_file_name(uint64_t number) { return kGeneration + eight_digits(number) + kJson; }

std::optional<uint64_t> generation_from_name(std::string_view name) {
  if (!name.starts_with(kGeneration) || !name.ends_with(kJson)) return std::nullopt;
  if (name.size() < kGeneration.size() + kJson.size()) return std::nullopt;
  return parse_digits(name.substr(kGeneration.size(), name.size() - kGeneration.size() - kJson.size()));
}

std::string rank_file_name(uint64_t rank, uint64_t of) { return str("rank-", rank, "-of-", of, ".safetensors"); }

std::string format_manifest(const Manifest& manifest) {
  OrderedJson json;
  json["format"] = kFormatName;
  json["version"] = manifest.version;
  json["generation"] = manifest.generation;
  json["step"] = manifest.step;
  json["samples"] = manifest.samples;
  json["world"] = manifest.world;
  json["created_unix_seconds"] = manifest.created_unix_seconds;
  json["state"] = manifest.state.is_null() ? OrderedJson::object() : OrderedJson(manifest.state);
  json["files"] = OrderedJson::array();
  for (const Manifest::File& file : manifest.files) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh128", file.xxh128}});
    if (!file.tensors.empty()) json["files"].back()["tensors"] = file.tensors;
  }
  std::string text;
  try {
    text = json.dump(2);
  } catch (const OrderedJson::exception& error) {
    throw Error(ErrorKind::kInternal, kManifestName, str("cannot be written as JSON: ", error.what()));
  }
  text.resize(text.size() - 2);  // "\n}": the seal closes the object
  text += str(kSealBefore, xxh128_hex(text), kSealAfter);
  try {
    parse_manifest(text, kManifestName);
  } catch (const Error& error) {
    throw Error(ErrorKind::kInternal, kManifestName, "cannot be written: " + error.problem());
  }
  return text;
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  const Members members(json, where, "");
  // The version comes before the seal, which another version may do otherwise.
  if (members.text("format") != kFormatName) members.refuse("is not the manifest of a SkyTrain checkpoint");
  const uint64_t version = members.number("version");
  if (version > kFormatVersion) {
    throw TooNew(
        ErrorKind::kData, where,
        str("has checkpoint format version ", version, ", this SkyTrain reads versions up to ", kFormatVersion),
        "use the SkyTrain that wrote it, or a newer one");
  }
  check_seal(text, where);
  if (version == 0) members.refuse("has checkpoint format version 0, which never existed");

  Manifest manifest;
  manifest.version = static_cast<int>(version);
  manifest.generation = members.number("generation");
  manifest.step = members.number("step");
  manifest.samples = members.number("samples");
  const uint64_t world = members.number("world");
  if (world == 0 || world > INT32_MAX) members.refuse(str("has an impossible world of ", world));
  manifest.world = static_cast<int64_t>(world);
  const Json& created = members.get("created_unix_seconds");
  if (!created.is_number()) members.refuse("created_unix_seconds is not a number");
  manifest.created_unix_seconds = created.get<double>();
  manifest.state = members.get("state");
  if (!manifest.state.is_object()) members.refuse("state is not a JSON object");
  const Json& files = members.get("files");
  if (!files.is_array()) members.refuse("files is not a list");
  for (size_t i = 0; i < files.size(); ++i) {
    const Members file(files[i], where, str("files[", i, "]."));
    manifest.files.push_back({.name = file.text("name"), .bytes = file.number("bytes"), .xxh128 = file.text("xxh128")});
    if (!files[i].contains("tensors")) continue;
    const Json& tensors = files[i]["tensors"];
    if (!tensors.is_object()) members.refuse(str("files[", i, "].tensors is not a JSON object"));
    for (const auto& [name, hash] : tensors.items()) {
      if (!hash.is_string()) members.refuse(str("files[", i, "].tensors has a hash that is not a string"));
      manifest.files.back().tensors[name] = hash.get<std::string>();
    }
  }
  check_files(manifest.files, where);
  return manifest;
}

}  // namespace skytrain::checkpoint
