#include "skytrain/checkpoint/file_image.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::checkpoint {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

FileImage::~FileImage() {
  if (memory_ != nullptr) ::munmap(memory_, capacity_);
}

void FileImage::lay_out(std::span<const NamedArray> arrays, const std::map<std::string, std::string>& metadata) {
  layout_ = lay_out_safetensors(arrays, metadata, kPage);
  reserve(static_cast<size_t>(layout_.file_bytes));
  std::memcpy(memory_, layout_.head.data(), layout_.head.size());
}

void FileImage::reserve_for(std::span<const NamedArray> arrays, const std::map<std::string, std::string>& metadata) {
  reserve(static_cast<size_t>(lay_out_safetensors(arrays, metadata, kPage).file_bytes));
}

void FileImage::touch() {
  for (size_t at = 0; at < capacity_; at += kPage) {
    const volatile std::byte* const page = memory_ + at;
    const_cast<volatile std::byte&>(*page) = *page;
  }
}

std::span<std::byte> FileImage::array(size_t index) const {
  return {memory_ + layout_.begins[index], static_cast<size_t>(layout_.sizes[index])};
}

std::span<const std::byte> FileImage::existing(uint64_t bytes) {
  struct stat info {};
  if (fd_ < 0 || bytes == 0 || ::fstat(fd_, &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes) return {};
  reserve(static_cast<size_t>(bytes));
  return {memory_, static_cast<size_t>(bytes)};
}

void FileImage::reserve(size_t bytes) {
  if (bytes <= capacity_) return;
  if (memory_ != nullptr) ::munmap(memory_, capacity_);
  memory_ = nullptr;
  capacity_ = 0;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  struct stat info {};
  if (fd_ >= 0 &&
      (::fstat(fd_, &info) != 0 || (info.st_size < off_t(rounded) && ::ftruncate(fd_, off_t(rounded)) != 0)))
    throw errno_error("checkpoint", str("cannot get ", human_bytes(double(rounded)), " of memory for it"), errno);
  const int flags = fd_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const mapped = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, flags, fd_, 0);
  if (mapped == MAP_FAILED) {
    throw errno_error("checkpoint", str("cannot get ", human_bytes(double(rounded)), " of memory for it"), errno);
  }
  ::madvise(mapped, rounded, MADV_HUGEPAGE);  // fewer faults when it is filled for the first time
  memory_ = static_cast<std::byte*>(mapped);
  capacity_ = rounded;
}

}  // namespace skytrain::checkpoint
