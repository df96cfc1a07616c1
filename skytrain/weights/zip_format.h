// skytrain/weights/zip_format.h
//
// Numbers of the ZIP format (PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 to 4.5) that reader and writer share.

#pragma once
#include <cstddef>
#include <cstdint>

namespace skytrain::weights::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50, kDataDescriptor = 0x08074b50, kCentralHeader = 0x02014b50;
inline constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
inline constexpr size_t kLocalHeaderBytes = 30, kCentralHeaderBytes = 46;
inline constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kEnd64LocatorBytes = 20;
inline constexpr size_t kMaxComment = 0xFFFF;

inline constexpr uint16_t kFlagEncrypted = 1 << 0, kFlagDescriptor = 1 << 3, kFlagUtf8 = 1 << 11;
inline constexpr uint16_t kStored = 0;
inline constexpr uint16_t kExtraZip64 = 0x0001;
inline constexpr uint32_t kIn64 = 0xFFFFFFFF;  // "see the zip64 field"
inline constexpr uint16_t kCountIn64 = 0xFFFF;

}  // namespace skytrain::weights::zip
