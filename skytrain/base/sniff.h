// skytrain/base/sniff.h
//
// Says in words what a file that is not what it should be looks like, from its first bytes. Thread-safe.

#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace skytrain {

// "looks like HTML", "is a ZIP archive", "is a Git LFS pointer", …; otherwise "starts with 0x3c 0x21 0x44 0x4f".
// A few hundred bytes are enough.
std::string describe_content(std::span<const uint8_t> head);

}  // namespace skytrain
