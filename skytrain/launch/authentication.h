// skytrain/launch/authentication.h
//
// How the agents of a job prove to each other that they have its key, before anything else is said, and how what they
// say afterwards is sealed. All arithmetic is OpenSSL's: HMAC-SHA256, RAND_bytes, CRYPTO_memcmp.
//
//   head    {"skytrain_run": 1, "nonce": N_h}
//   member  {"skytrain_run": 1, "nonce": N_m, "proof": HMAC(key, "member" 0 version N_h N_m)}
//   head    {"proof": HMAC(key, "head" 0 version N_h N_m)}, or {"refused": "key" | "version"}
//
// Nonces are 32 fresh random bytes each, so no proof is good twice; the names of the two sides are part of it, so none
// can be sent back. The member proves itself first: whoever merely connects gets nothing to try keys on. From then on
// each direction has a key of its own, HMAC(key, "from head" | "from member" 0 version N_h N_m), and each frame is
// HMAC(that, counter content) before the content; the counter starts at 0 and goes up by one. Nothing is encrypted.
//
// No thread-safety needed: values, and machines that belong to one connection each.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skytrain/base/error.h"

namespace skytrain::launch {

inline constexpr int kNodeProtocol = 1;
inline constexpr size_t kHandshakeFrameBytes = 1024;  // no frame of a handshake is longer
inline constexpr char kKeyVariable[] = "SKYTRAIN_JOB_KEY";
// In messages: a command that makes a key.
inline constexpr char kMakeKey[] = "export SKYTRAIN_JOB_KEY=$(openssl rand -hex 32)";

// The key of a job: at least 16 bytes. What it holds is wiped when it goes.
class JobKey {
 public:
  // Throws Error(kUsage, where) when it is too short to be safe; the message does not quote it.
  JobKey(std::string secret, const std::string& where);
  JobKey(const JobKey&) = default;
  JobKey& operator=(const JobKey&) = default;
  ~JobKey();
  std::string_view bytes() const { return secret_; }

 private:
  std::string secret_;
};

// From the file, or else from SKYTRAIN_JOB_KEY; nullopt when neither is given. White space around it is not part of it.
// Throws Error(kUsage | kEnvironment): a file that others may read (any mode but 0600 and 0400), or of someone else, is
// refused.
std::optional<JobKey> find_job_key(const std::string& file);

std::string random_bytes(size_t count);  // throws Error(kEnvironment)
std::string hmac_sha256(std::string_view key, std::string_view content);
std::string sha256_hex(std::string_view content);
bool same_secret(std::string_view a, std::string_view b);  // in a time that does not depend on where they differ

// One direction of a connection.
class Seal {
 public:
  explicit Seal(std::string key) : key_(std::move(key)) {}
  std::string close(std::string_view content);
  // The content. Throws Error(kEnvironment) for a frame that was changed, replayed, left out or is of another sender.
  std::string open(std::string_view frame);

 private:
  std::string next_mac(std::string_view content);
  std::string key_;
  uint64_t counter_ = 0;
};

struct Seals {
  Seal out, in;
};

// Why a handshake came to nothing.
struct Refusal {
  enum class Why { kKey, kVersion, kGarbage };
  Why why = Why::kGarbage;
  int version = 0;  // kVersion: the peer's
};

class HeadHandshake {
 public:
  explicit HeadHandshake(const JobKey& key);
  const std::string& first_frame() const { return first_; }
  // What the member has answered: the frame to send, sealed() or refusal() afterwards.
  std::string answer(std::string_view frame);
  const std::optional<Refusal>& refusal() const { return refusal_; }
  Seals seals() const;  // REQUIRES: answer() without refusal()

 private:
  JobKey key_;
  std::string ours_, theirs_, first_;
  std::optional<Refusal> refusal_;
};

class MemberHandshake {
 public:
  explicit MemberHandshake(const JobKey& key);
  // Next frame of the head: the frame to send, "" for none.
  std::string answer(std::string_view frame);
  bool done() const { return step_ == 2; }
  const std::optional<Refusal>& refusal() const { return refusal_; }
  Seals seals() const;  // REQUIRES: done()

 private:
  JobKey key_;
  std::string ours_, theirs_;
  int step_ = 0;
  std::optional<Refusal> refusal_;
};

}  // namespace skytrain::launch
