// Checkpoints against the bare disk, for ./dev bench checkpoint:
//
//   checkpoint_io write FOLDER MIB       seconds of raw writes of so much with an fsync, and of a commit of the same
//   checkpoint_io read CHECKPOINT        seconds of raw reads of its tensors that are in no cache, and of loading it so
//   checkpoint_io warm CHECKPOINT        seconds of loading it from the page cache
//
// Each prints one line of JSON.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "skytrain/base/cpu_clock.h"
#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/file_image.h"
#include "skytrain/checkpoint/load.h"

namespace {

using namespace skytrain;  // NOLINT(google-build-using-namespace)

constexpr size_t kMiB = size_t{1} << 20;

double seconds_of_run(const std::function<void()>& run) {
  const double begin = seconds_of(CLOCK_MONOTONIC);
  run();
  return seconds_of(CLOCK_MONOTONIC) - begin;
}

void check(bool holds, const std::string& what) {
  if (!holds) throw errno_error(what, "failed", errno);
}

// Calls work(offset, size) for all blocks of `bytes`, `in_flight` at a time.
void blocks(size_t bytes, size_t block, int in_flight, const std::function<void(size_t, size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < in_flight; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next.fetch_add(block); at < bytes; at = next.fetch_add(block))
        work(at, std::min(block, bytes - at));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string label(size_t block, int in_flight) {
  return std::to_string(block / kMiB) + " MiB, " + std::to_string(in_flight) + " in flight";
}

// Which some disks fill and write much faster than small ones.
std::unique_ptr<void, void (*)(void*)> huge_pages(size_t bytes) {
  constexpr size_t kHugePage = 2 * kMiB;
  const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory = std::aligned_alloc(kHugePage, rounded);
  ::madvise(memory, rounded, MADV_HUGEPAGE);
  return {memory, std::free};
}

// REQUIRES: content of whole blocks of 4096.
double raw_write(const std::string& path, std::span<const std::byte> content, size_t block, int in_flight) {
  ::unlink(path.c_str());
  const double seconds = seconds_of_run([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0666);
    check(fd >= 0, path);
    blocks(content.size(), block, in_flight, [&](size_t at, size_t size) {
      check(::pwrite(fd, content.data() + at, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size), path);
    });
    check(::fsync(fd) == 0, path);
    ::close(fd);
  });
  ::unlink(path.c_str());
  return seconds;
}

Json write(const std::string& folder, size_t mib) {
  FileSystem& fs = FileSystem::real();
  checkpoint::NamedArray array;
  array.name = "state";
  array.dtype = checkpoint::Dtype::kU8;
  array.shape = {static_cast<int64_t>(mib * kMiB)};
  checkpoint::FileImage image(::memfd_create("checkpoint_io", MFD_CLOEXEC));  // as a run has it
  image.lay_out(std::vector{array}, {});
  uint64_t value = 1;
  const std::span<std::byte> bytes = image.array(0);
  for (size_t at = 0; at < bytes.size(); at += 8) {
    value = value * 6364136223846793005 + 1442695040888963407;
    std::memcpy(bytes.data() + at, &value, 8);
  }
  const auto memory = huge_pages(image.file().size());
  const std::span<std::byte> raw(static_cast<std::byte*>(memory.get()), image.file().size());
  std::memcpy(raw.data(), image.file().data(), raw.size());
  Json result = {{"bytes", image.file().size()}, {"raw_s", Json::object()}};
  checkpoint::Manifest manifest;
  manifest.step = 1;
  const auto commit = [&] { checkpoint::commit_image(fs, folder + "/io", manifest, image.file()); };
  for (const size_t block : {4 * kMiB, 16 * kMiB, 64 * kMiB}) {
    for (const int in_flight : {1, 4})
      result["raw_s"][label(block, in_flight)] = raw_write(folder + "/raw", raw, block, in_flight);
    result["ours_s"].push_back(seconds_of_run(commit));  // between the others, which favours nobody
    fs.remove_tree(folder + "/io");
  }
  return result;
}

void drop_from_cache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0, path);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

double raw_read(const std::string& path, size_t block, int in_flight, bool direct) {
  drop_from_cache(path);
  const uint64_t bytes = FileSystem::real().stat(path)->size;
  return seconds_of_run([&] {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
    check(fd >= 0, path);
    blocks(bytes, block, in_flight, [&](size_t at, size_t) {
      thread_local const auto memory = huge_pages(block);
      check(::pread(fd, memory.get(), block, static_cast<off_t>(at)) > 0, path);
    });
    ::close(fd);
  });
}

// Into memory that was used before, as a model's parameters are.
double load(const std::string& folder) {
  std::map<std::string, std::vector<std::byte>> tensors;
  const auto place = [&](const checkpoint::TensorFile& file) {
    std::map<std::string, checkpoint::Destination> destinations;
    for (const auto& [name, info] : file.header.arrays) {
      std::vector<std::byte>& bytes = tensors[name];
      bytes.resize(info.end - info.begin);
      destinations[name] = {bytes};
    }
    return destinations;
  };
  const checkpoint::Manifest manifest = checkpoint::read_manifest(FileSystem::real(), folder);
  for (const checkpoint::Manifest::File& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    const auto header = checkpoint::read_safetensors_header(FileSystem::real(), path);
    place({folder, path, manifest, header});
  }
  return seconds_of_run([&] { checkpoint::load(FileSystem::real(), folder, place); });
}

Json read(const std::string& folder) {
  const std::string path = folder + "/rank-0-of-1.safetensors";
  Json result = {{"bytes", FileSystem::real().stat(path)->size}};
  result["raw_s"]["page cache, 4 MiB"] = raw_read(path, 4 * kMiB, 1, /*direct=*/false);
  for (const int in_flight : {1, 4}) {
    for (const size_t block : {kMiB, 4 * kMiB})
      result["raw_s"][label(block, in_flight)] = raw_read(path, block, in_flight, /*direct=*/true);
    drop_from_cache(path);
    result["ours_s"].push_back(load(folder));
  }
  return result;
}

Json warm(const std::string& folder) {
  FileSystem::real().read_file(folder + "/rank-0-of-1.safetensors");
  Json result = Json::object();
  for (int i = 0; i < 3; ++i) {
    const double seconds = load(folder);
    if (i == 0) result["first_s"] = seconds;
    result["load_s"] = std::min(seconds, result.value("load_s", seconds));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string verb = argc > 1 ? argv[1] : "";
    Json result;
    if (verb == "write" && argc == 4) {
      result = write(argv[2], std::strtoull(argv[3], nullptr, 10));
    } else if (verb == "read" && argc == 3) {
      result = read(argv[2]);
    } else if (verb == "warm" && argc == 3) {
      result = warm(argv[2]);
    } else {
      std::fprintf(stderr, "checkpoint_io write FOLDER MIB | read CHECKPOINT | warm CHECKPOINT\n");
      return 2;
    }
    std::printf("%s\n", result.dump().c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return exit_code(error.kind());
  }
  return 0;
}
