#include "skytrain/launch/node_messages.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

using namespace message;  // NOLINT: this file is about them

// Each message's fields are listed once; a Writer or a Reader goes over the list.

template <class V>
void visit(V& v, Join& m) {
  v("host", m.host);
  v("command", m.command);
  v("nodes", m.nodes);
  v("ranks", m.ranks);
  v("node_rank", m.node_rank);
  v("asked", m.asked);
  v("restarts", m.restarts);
  v("resume", m.resume);
}

template <class V>
void visit(V& v, Failure& m) {
  v("rank", m.rank);
  v("node", m.node);
  v("host", m.host);
  v("signalled", m.end.status.signalled);
  v("code", m.end.status.code);
  v("killed", m.end.killed);
  v("lost", m.end.lost);
  v("oom", m.oom_killer_struck);
  v("grace", m.grace_seconds);
  v("last_words", m.last_words);
  v("cause", m.cause);
  v("cause_hint", m.cause_hint);
  v("cause_code", m.cause_code);
}

template <class V>
void visit(V& v, Failing& m) {
  v("attempt", m.attempt);
  visit(v, m.failure);
  v("seconds_ago", m.seconds_ago);
}

template <class V>
void visit(V& v, Ended& m) {
  v("attempt", m.attempt);
  v("orderly", m.orderly);
}

template <class V>
void visit(V& v, Settled& m) {
  v("attempt", m.attempt);
  v("resume", m.resume);
}

template <class V>
void visit(V& v, NoticeGiven& m) {
  v("reason", m.reason);
  v("seconds_left", m.seconds_left);
}

template <class V>
void visit(V&, Abort&) {}
template <class V>
void visit(V&, Alive&) {}
template <class V>
void visit(V&, Ending&) {}

template <class V>
void visit(V& v, Welcome& m) {
  v("node_timeout", m.node_timeout);
}

template <class V>
void visit(V& v, Refused& m) {
  v("what", m.what);
  v("hint", m.hint);
}

template <class V>
void visit(V& v, Note& m) {
  v("text", m.text);
}

template <class V>
void visit(V& v, Start& m) {
  v("attempt", m.attempt);
  v("node_rank", m.node_rank);
  v("nodes", m.nodes);
  v("first_rank", m.first_rank);
  v("world_size", m.world_size);
  v("master_address", m.master_address);
  v("master_port", m.master_port);
  v("run_id", m.run_id);
  v("restarts", m.restarts);
  v("max_restarts", m.max_restarts);
  v("resume", m.resume);
}

template <class V>
void visit(V& v, Stop& m) {
  v("attempt", m.attempt);
  visit(v, m.failure);
}

template <class V>
void visit(V& v, AllEnded& m) {
  v("attempt", m.attempt);
  v("orderly", m.orderly);
}

template <class V>
void visit(V& v, End& m) {
  v("kind", m.kind);
  v("restarts", m.restarts);
  v("has_failure", m.has_failure);
  visit(v, m.failure);
}

// In the order of NodeMessage.
constexpr const char* kTypes[] = {"join",    "failing", "ended", "settled", "notice", "abort",     "alive", "welcome",
                                  "refused", "note",    "start", "stop",    "ending", "all_ended", "end"};
static_assert(std::size(kTypes) == std::variant_size_v<NodeMessage>);

struct Writer {
  Json json;
  template <class T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
};

struct Reader {
  const Json& json;

  const Json& field(const char* key, bool (Json::*is)() const noexcept) {
    const auto at = json.find(key);
    if (at == json.end() || !((*at).*is)()) {
      throw Error(ErrorKind::kEnvironment, "", str("a message of another agent lacks \"", key, "\", or it is odd"));
    }
    return *at;
  }
  void operator()(const char* key, std::string& value) { value = field(key, &Json::is_string).get<std::string>(); }
  void operator()(const char* key, bool& value) { value = field(key, &Json::is_boolean).get<bool>(); }
  void operator()(const char* key, int& value) {
    const Json& number = field(key, &Json::is_number_integer);
    const auto wide = number.get<int64_t>();
    value = static_cast<int>(wide);
    if (value != wide) throw Error(ErrorKind::kEnvironment, "", str("a message's \"", key, "\" is out of range"));
  }
  void operator()(const char* key, double& value) {
    value = field(key, &Json::is_number).get<double>();
    if (!std::isfinite(value)) throw Error(ErrorKind::kEnvironment, "", str("a message's \"", key, "\" is no number"));
  }
};

template <size_t I = 0>
NodeMessage decode_as(const Json& json, const std::string& type) {
  if constexpr (I == std::variant_size_v<NodeMessage>) {
    throw Error(ErrorKind::kEnvironment, "", str("unknown message \"", printable(type, 40), "\""));
  } else {
    if (type != kTypes[I]) return decode_as<I + 1>(json, type);
    std::variant_alternative_t<I, NodeMessage> message;
    Reader reader{json};
    visit(reader, message);
    return message;
  }
}

}  // namespace

std::string encode(const NodeMessage& message) {
  Writer writer;
  writer.json = Json::object();
  std::visit([&](auto copy) { visit(writer, copy); }, message);
  writer.json["type"] = kTypes[message.index()];
  return writer.json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

NodeMessage decode_node_message(std::string_view text) {
  const auto refuse = [&] { return Error(ErrorKind::kEnvironment, "", str("no message: ", printable(text, 60))); };
  Json json;
  try {
    json = parse_json(text, "");
  } catch (const Error&) {
    throw refuse();
  }
  if (!json.is_object()) throw refuse();
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string()) throw refuse();
  return decode_as(json, type->get<std::string>());
}

}  // namespace skytrain::launch
