#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/authentication.h"

namespace skytrain::launch {
namespace {

constexpr size_t kShortestKey = 16, kLongestKey = 4096;
constexpr char kSpace[] = " \t\r\n";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string read_key_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) throw errno_error(path, "cannot open the key file", errno);
  if (!S_ISREG(info.st_mode)) throw Error(ErrorKind::kUsage, path, "the key file is no plain file");
  if ((info.st_mode & 0177) != 0 || info.st_uid != ::geteuid()) {
    const bool foreign = info.st_uid != ::geteuid();
    throw Error(ErrorKind::kUsage, path,
                foreign ? "the key file belongs to another user" : "others may read or change the key file",
                foreign ? "copy it to one of your own, with mode 0600" : "chmod 600 " + path);
  }
  std::string text(kLongestKey + 1, '\0');
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  if (n < 0) throw errno_error(path, "cannot read the key file", errno);
  if (static_cast<size_t>(n) > kLongestKey) throw Error(ErrorKind::kUsage, path, "the key file is longer than 4 KiB");
  text.resize(static_cast<size_t>(n));
  return text;
}

}  // namespace

JobKey::JobKey(std::string secret, const std::string& where) : secret_(std::move(secret)) {
  if (secret_.size() < kShortestKey) {
    throw Error(ErrorKind::kUsage, where,
                str("a key of ", secret_.size(), " characters is too short: at least ", kShortestKey),
                str("this makes one: ", kMakeKey));
  }
}

JobKey::~JobKey() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

std::optional<JobKey> find_job_key(const std::string& file) {
  if (!file.empty()) return JobKey(trimmed(read_key_file(file)), file);
  const char* const variable = std::getenv(kKeyVariable);
  if (variable == nullptr) return std::nullopt;
  return JobKey(trimmed(variable), kKeyVariable);
}

}  // namespace skytrain::launch
