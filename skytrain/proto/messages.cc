#include "skytrain/proto/messages.h"

#include <cmath>
#include <limits>

#include "skytrain/base/text.h"

namespace skytrain::proto {
namespace {

// Each message's fields are listed once; an Encoder or a Decoder goes over the list.

template <class Visitor>
void visit(Visitor& v, Hello& m) {
  // Hello is what a program of another protocol version reads: its fields never change.
  v("protocol", m.protocol);
  v("version", m.version);
  v("torch_version", m.torch_version);
}

template <class Visitor>
void visit(Visitor& v, Start& m) {
  v("recipe", m.recipe);
  v("run_directory", m.run_directory);
  v("resume", m.resume);
  v("log_every", m.log_every);
  v("keep_snapshot", m.keep_snapshot);
}

template <class Visitor>
void visit(Visitor& v, Started& m) {
  v("resume_step", m.resume_step);
  v("resume_samples", m.resume_samples);
  v("total_steps", m.total_steps);
  v("total_samples", m.total_samples);
  v("samples_per_epoch", m.samples_per_epoch);
  v("parameters", m.parameters);
  v("devices", m.devices);
  v("slot", m.slot);
  v("precision", m.precision);
  v("decisions", m.decisions);
  v("recipe", m.recipe);
}

template <class Visitor>
void visit(Visitor& v, ProgressReport& m) {
  v("step", m.step);
  v("samples", m.samples);
  v("epoch", m.epoch);
  v("loss", m.loss);
  v("lr", m.lr);
  v("samples_per_second", m.samples_per_second);
  v("unix_seconds", m.unix_seconds);
  v("first", m.first);
}

template <class Visitor>
void visit(Visitor& v, Note& m) {
  v("level", m.level);
  v("line", m.line);
}

template <class Visitor>
void visit(Visitor& v, Evaluate& m) {
  v("recipe", m.recipe);
  v("checkpoint", m.checkpoint);
}

template <class Visitor>
void visit(Visitor& v, Trace& m) {
  v("recipe", m.recipe);
  v("checkpoint", m.checkpoint);
  v("output", m.output);
}

template <class Visitor>
void visit(Visitor& v, CheckpointDone& m) {
  v("step", m.step);
  v("samples", m.samples);
  v("path", m.path);
  v("seconds", m.seconds);
}

template <class Visitor>
void visit(Visitor& v, EvaluationDone& m) {
  v("step", m.step);
  v("samples", m.samples);
  v("loss", m.loss);
  v("metrics", m.metrics);
  v("seconds", m.seconds);
}

template <class Visitor>
void visit(Visitor& v, Interrupted& m) {
  v("step", m.step);
  v("samples", m.samples);
  v("checkpoint", m.checkpoint);
  v("saved_step", m.saved_step);
  v("saved_samples", m.saved_samples);
  v("summary", m.summary);
}

template <class Visitor>
void visit(Visitor& v, Finished& m) {
  v("summary", m.summary);
}

template <class Visitor>
void visit(Visitor& v, Failed& m) {
  v("kind", m.kind);
  v("where", m.where);
  v("problem", m.problem);
  v("hint", m.hint);
}

template <class Visitor>
void visit(Visitor& v, Stop& m) {
  v("seconds", m.seconds);
}

template <class M>
constexpr std::string_view kTypeName = "";
template <>
constexpr std::string_view kTypeName<Hello> = "hello";
template <>
constexpr std::string_view kTypeName<Start> = "start";
template <>
constexpr std::string_view kTypeName<Evaluate> = "evaluate";
template <>
constexpr std::string_view kTypeName<Trace> = "trace";
template <>
constexpr std::string_view kTypeName<Started> = "started";
template <>
constexpr std::string_view kTypeName<ProgressReport> = "progress";
template <>
constexpr std::string_view kTypeName<Note> = "note";
template <>
constexpr std::string_view kTypeName<CheckpointDone> = "checkpoint";
template <>
constexpr std::string_view kTypeName<EvaluationDone> = "evaluation";
template <>
constexpr std::string_view kTypeName<Interrupted> = "interrupted";
template <>
constexpr std::string_view kTypeName<Finished> = "finished";
template <>
constexpr std::string_view kTypeName<Failed> = "failed";
template <>
constexpr std::string_view kTypeName<Stop> = "stop";

class Encoder {
 public:
  explicit Encoder(std::string_view type) : json_{{"type", std::string(type)}} {}

  template <class T>
  void operator()(const char* key, const T& value) {
    json_[key] = value;
  }
  // JSON has no NaN and no infinity, and a diverging loss is just what a front program must see.
  void operator()(const char* key, double value) {
    if (std::isfinite(value)) {
      json_[key] = value;
    } else {
      json_[key] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    }
  }
  void operator()(const char* key, const std::optional<double>& value) { json_[key] = value ? Json(*value) : Json(); }
  void operator()(const char* key, ErrorKind value) { json_[key] = std::string(error_kind_name(value)); }

  Json take() { return std::move(json_); }

 private:
  Json json_;
};

class Decoder {
 public:
  Decoder(const Json& json, std::string_view type) : json_(json), type_(type) {}

  void operator()(const char* key, bool& value) { read(key, "true or false", &Json::is_boolean).get_to(value); }
  void operator()(const char* key, std::string& value) { read(key, "text", &Json::is_string).get_to(value); }
  void operator()(const char* key, Json& value) { value = read(key, "an object", &Json::is_object); }

  void operator()(const char* key, int& value) {
    int64_t wide = 0;
    (*this)(key, wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
      refuse(key, "a small integer");
    value = static_cast<int>(wide);
  }
  void operator()(const char* key, int64_t& value) {
    const Json& field = read(key, "an integer", &Json::is_number_integer);
    if (field.is_number_unsigned() && field.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      refuse(key, "an integer of 64 bits");
    }
    field.get_to(value);
  }
  void operator()(const char* key, uint64_t& value) {
    const Json& field = read(key, "an integer", &Json::is_number_integer);
    if (!field.is_number_unsigned() && field.get<int64_t>() < 0) refuse(key, "an integer of 0 or more");
    field.get_to(value);
  }
  void operator()(const char* key, double& value) {
    const Json& field = read(key, "", nullptr);
    if (field.is_number()) {
      field.get_to(value);
    } else if (field == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (field == "inf" || field == "-inf") {
      value = field == "inf" ? HUGE_VAL : -HUGE_VAL;
    } else {
      refuse(key, "a number");
    }
  }
  void operator()(const char* key, std::optional<double>& value) {
    value.reset();
    if (read(key, "", nullptr).is_null()) return;
    (*this)(key, value.emplace());
  }
  void operator()(const char* key, ErrorKind& value) {
    std::string name;
    (*this)(key, name);
    value = error_kind_from_name(name);
  }
  void operator()(const char* key, std::vector<std::pair<std::string, std::string>>& value) {
    value.clear();
    for (const Json& pair : read(key, "a list", &Json::is_array)) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        refuse(key, "a list of pairs of texts");
      }
      value.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
    }
  }
  void operator()(const char* key, std::vector<std::pair<std::string, double>>& value) {
    value.clear();
    for (const Json& pair : read(key, "a list", &Json::is_array)) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number()) {
        refuse(key, "a list of pairs of a text and a number");
      }
      value.emplace_back(pair[0].get<std::string>(), pair[1].get<double>());
    }
  }

 private:
  const Json& read(const char* key, const char* expected, bool (Json::*is_expected)() const noexcept) {
    const auto field = json_.find(key);
    if (field == json_.end()) {
      throw Error(ErrorKind::kInternal, "", str("message \"", type_, "\" lacks \"", key, "\""));
    }
    if (is_expected != nullptr && !((*field).*is_expected)()) refuse(key, expected);
    return *field;
  }
  [[noreturn]] void refuse(const char* key, const char* expected) {
    throw Error(ErrorKind::kInternal, "", str("message \"", type_, "\": \"", key, "\" is not ", expected));
  }

  const Json& json_;
  std::string_view type_;
};

template <size_t I = 0>
Message decode_as(const Json& json, const std::string& type) {
  if constexpr (I == std::variant_size_v<Message>) {
    throw Error(ErrorKind::kInternal, "", str("unknown message type \"", printable(type, 40), "\""));
  } else {
    using M = std::variant_alternative_t<I, Message>;
    static_assert(!kTypeName<M>.empty(), "a message without a type name");
    if (type != kTypeName<M>) return decode_as<I + 1>(json, type);
    M message;
    Decoder decoder(json, kTypeName<M>);
    visit(decoder, message);
    return message;
  }
}

}  // namespace

Json encode(const Message& message) {
  return std::visit(
      []<class M>(M copy) {
        Encoder encoder(kTypeName<M>);
        visit(encoder, copy);
        return encoder.take();
      },
      message);
}

Message decode(const Json& json) {
  if (!json.is_object()) throw Error(ErrorKind::kInternal, "", "a message is no JSON object");
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string()) throw Error(ErrorKind::kInternal, "", "a message lacks \"type\"");
  return decode_as(json, type->get<std::string>());
}

void check_protocol(const Hello& hello) {
  if (hello.protocol == kProtocolVersion) return;
  throw Error(ErrorKind::kEnvironment, "",
              str("skytrain-worker ", printable(hello.version, 40), " speaks protocol ", hello.protocol,
                  ", this skytrain speaks ", kProtocolVersion),
              "install skytrain and skytrain-worker from the same build");
}

}  // namespace skytrain::proto
