// skytrain/checkpoint/memory_snapshot.h
//
// The last state of a run in memory that outlives its worker: what a worker that is started in place of one that died
// goes on from, without what was trained since the newest checkpoint on the disk being lost. Two files without a name
// (memfd_create): the content of a safetensors file (file_image.h maps it), and the manifest that vouches for it with
// its hash. The program that supervises holds them, and they are gone with it: nothing is left anywhere.
//
// One writer at a time. A writer that dies in the middle leaves a manifest that is cut off, or a hash that does not
// fit.

#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "skytrain/base/process.h"
#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {

class MemorySnapshot {
 public:
  struct Files {
    Fd image, manifest;
  };
  // Throws Error(kEnvironment).
  static Files create();

  // The descriptors stay the caller's.
  MemorySnapshot(int image, int manifest) : image_(image), manifest_(manifest) {}

  int image() const { return image_; }
  // To be called before the image is changed: what is there does not count any more.
  void forget();
  // The image holds what manifest.files[0] says. Throws Error(kEnvironment).
  void publish(const Manifest& manifest);
  // Of the state that is there; nullopt: there is none, or it is cut off.
  std::optional<Manifest> manifest() const;

 private:
  int image_, manifest_;
};

// Whether the bytes are those of `file`: its size and its hash.
bool is_whole(std::span<const std::byte> content, const Manifest::File& file);

}  // namespace skytrain::checkpoint
