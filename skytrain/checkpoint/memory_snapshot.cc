#include "skytrain/checkpoint/memory_snapshot.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/checkpoint/manifest.h"

namespace skytrain::checkpoint {
namespace {

Fd create_file(const char* name) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd) throw errno_error("the last state in memory", "cannot make a file in memory", errno);
  return fd;
}

}  // namespace

MemorySnapshot::Files MemorySnapshot::create() {
  return {create_file("skytrain-snapshot"), create_file("skytrain-snapshot-manifest")};
}

void MemorySnapshot::forget() {
  if (::ftruncate(manifest_, 0) != 0) throw errno_error("the last state in memory", "cannot be cleared", errno);
}

void MemorySnapshot::publish(const Manifest& manifest) {
  const std::string text = format_manifest(manifest);
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::pwrite(manifest_, text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (written < 0) throw errno_error("the last state in memory", "cannot be written", errno);
    at += static_cast<size_t>(written);
  }
}

std::optional<Manifest> MemorySnapshot::manifest() const {
  struct stat info {};
  if (::fstat(manifest_, &info) != 0 || info.st_size <= 0) return std::nullopt;
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (::pread(manifest_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return std::nullopt;
  try {
    Manifest manifest = parse_manifest(text, "the last state in memory");
    if (manifest.files.size() != 1) return std::nullopt;
    return manifest;
  } catch (const Error&) {  // cut off
    return std::nullopt;
  }
}

bool is_whole(std::span<const std::byte> content, const Manifest::File& file) {
  return content.size() == file.bytes && xxh128_hex(content) == file.xxh128;
}

}  // namespace skytrain::checkpoint
