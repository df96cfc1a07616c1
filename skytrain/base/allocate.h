// skytrain/base/allocate.h
//
// Large blocks of memory, whose lack is an error of the machine and not of the program. Thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace skytrain {

// Uninitialised memory, because all of it is about to be written. Throws Error(kEnvironment, where, "needs … of
// memory").
std::unique_ptr<uint8_t[]> allocate_bytes(size_t size, const std::string& where);

}  // namespace skytrain
