// skytrain/weights/sniff.h
//
// Tells what a file is from its first bytes.

#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace skytrain::weights {

enum class FileKind { kSafetensors, kZip, kPickle, kTar, kOther };
FileKind sniff(std::span<const std::byte> file);

// What a file of kind kOther or kTar looks like, for a message: "looks like HTML", "is an HDF5 file".
std::string describe_other(std::span<const std::byte> file);

}  // namespace skytrain::weights
