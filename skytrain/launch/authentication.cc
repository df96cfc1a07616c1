#include "skytrain/launch/authentication.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "skytrain/base/json.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr size_t kNonceBytes = 32, kMacBytes = 32;

// A configuration of this machine (engines, other providers) has no say in it.
void init() {
  static const bool once = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1;
  static_cast<void>(once);
}

Error failed(const char* what) { return Error(ErrorKind::kEnvironment, "OpenSSL", str(what, " failed")); }

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

// "" when it is not hex of so many bytes.
std::string unhex(const std::string& text, size_t bytes) {
  if (text.size() != 2 * bytes || text.find_first_not_of("0123456789abcdef") != std::string::npos) return "";
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string result;
  for (size_t i = 0; i < text.size(); i += 2) result += static_cast<char>(value(text[i]) << 4 | value(text[i + 1]));
  return result;
}

std::string derived(const JobKey& key, const char* name, const std::string& head, const std::string& member) {
  return hmac_sha256(key.bytes(), str(name, '\0', kNodeProtocol, '\0') + head + member);
}

// An object, or null.
Json parse(std::string_view frame) {
  try {
    Json json = parse_json(frame, "");
    return json.is_object() ? json : Json();
  } catch (const Error&) {
    return Json();
  }
}

int version_of(const Json& json) {
  const auto at = json.find("skytrain_run");
  return at != json.end() && at->is_number_integer() ? static_cast<int>(at->get<int64_t>()) : 0;
}

std::string bytes_of(const Json& json, const char* name, size_t bytes) {
  const auto at = json.find(name);
  return at != json.end() && at->is_string() ? unhex(at->get<std::string>(), bytes) : "";
}

std::string refused(const char* why) { return Json{{"refused", why}}.dump(); }

}  // namespace

std::string random_bytes(size_t count) {
  init();
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw failed("the random generator");
  }
  return bytes;
}

std::string hmac_sha256(std::string_view key, std::string_view content) {
  init();
  std::string mac(kMacBytes, '\0');
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(content.data()), content.size(),
           reinterpret_cast<unsigned char*>(mac.data()), &size) == nullptr) {
    throw failed("HMAC");
  }
  return mac;
}

std::string sha256_hex(std::string_view content) {
  init();
  std::string digest(kMacBytes, '\0');
  if (EVP_Digest(content.data(), content.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(),
                 nullptr) != 1) {
    throw failed("SHA-256");
  }
  return hex(digest);
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string Seal::next_mac(std::string_view content) {
  std::string counted(8, '\0');
  for (size_t i = 0; i < 8; ++i) counted[i] = static_cast<char>(counter_ >> (8 * i) & 0xff);
  ++counter_;
  return hmac_sha256(key_, counted.append(content));
}

std::string Seal::close(std::string_view content) { return next_mac(content).append(content); }

std::string Seal::open(std::string_view frame) {
  const std::string_view mac = frame.substr(0, kMacBytes), content = frame.substr(mac.size());
  if (!same_secret(mac, next_mac(content))) {
    throw Error(ErrorKind::kEnvironment, "", "a message was changed on its way, or is not of the peer that began");
  }
  return std::string(content);
}

HeadHandshake::HeadHandshake(const JobKey& key) : key_(key), ours_(random_bytes(kNonceBytes)) {
  first_ = Json{{"skytrain_run", kNodeProtocol}, {"nonce", hex(ours_)}}.dump();
}

std::string HeadHandshake::answer(std::string_view frame) {
  const Json json = parse(frame);
  const int version = version_of(json);
  if (version == 0) {
    refusal_ = Refusal{Refusal::Why::kGarbage};
    return "";
  }
  if (version != kNodeProtocol) {
    refusal_ = Refusal{Refusal::Why::kVersion, version};
    return refused("version");
  }
  theirs_ = bytes_of(json, "nonce", kNonceBytes);
  const std::string proof = bytes_of(json, "proof", kMacBytes);
  if (theirs_.empty() || proof.empty()) {
    refusal_ = Refusal{Refusal::Why::kGarbage};
    return "";
  }
  if (!same_secret(proof, derived(key_, "member", ours_, theirs_))) {
    refusal_ = Refusal{Refusal::Why::kKey};
    return refused("key");
  }
  return Json{{"proof", hex(derived(key_, "head", ours_, theirs_))}}.dump();
}

Seals HeadHandshake::seals() const {
  return {Seal(derived(key_, "from head", ours_, theirs_)), Seal(derived(key_, "from member", ours_, theirs_))};
}

MemberHandshake::MemberHandshake(const JobKey& key) : key_(key), ours_(random_bytes(kNonceBytes)) {}

std::string MemberHandshake::answer(std::string_view frame) {
  const Json json = parse(frame);
  if (step_ == 0) {
    const int version = version_of(json);
    theirs_ = bytes_of(json, "nonce", kNonceBytes);
    if (version == 0 || (version == kNodeProtocol && theirs_.empty())) {
      refusal_ = Refusal{Refusal::Why::kGarbage};
      return "";
    }
    if (version != kNodeProtocol) {
      refusal_ = Refusal{Refusal::Why::kVersion, version};
      return Json{{"skytrain_run", kNodeProtocol}}.dump();  // so that the head can say it too
    }
    step_ = 1;
    return Json{
        {"skytrain_run", kNodeProtocol}, {"nonce", hex(ours_)}, {"proof", hex(derived(key_, "member", theirs_, ours_))}}
        .dump();
  }
  const std::string proof = bytes_of(json, "proof", kMacBytes);
  if (!proof.empty() && same_secret(proof, derived(key_, "head", theirs_, ours_))) {
    step_ = 2;
  } else {
    const bool told = json.is_object() && (json.contains("refused") || !proof.empty());
    refusal_ = Refusal{told ? Refusal::Why::kKey : Refusal::Why::kGarbage};
  }
  return "";
}

Seals MemberHandshake::seals() const {
  return {Seal(derived(key_, "from member", theirs_, ours_)), Seal(derived(key_, "from head", theirs_, ours_))};
}

}  // namespace skytrain::launch
