#include "skytrain/data/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::data {
namespace {

constexpr const char* kAgain = "copy or download the file again";

}  // namespace

void unzstd(const FileSystem& fs, const std::string& path, uint64_t size,
            const std::function<void(std::span<const std::byte>)>& sink) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) throw Error(ErrorKind::kData, path, "is gone");
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  std::vector<std::byte> packed(ZSTD_DStreamInSize()), unpacked(ZSTD_DStreamOutSize());
  uint64_t done = 0;
  size_t state = 1;  // 0: at the end of a frame
  for (uint64_t offset = 0; offset < info->size;) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(packed.size(), info->size - offset));
    fs.read_range(path, offset, std::span(packed).first(count));
    offset += count;
    ZSTD_inBuffer in{packed.data(), count, 0};
    bool more = true;  // output that did not fit
    while (in.pos < in.size || more) {
      ZSTD_outBuffer out{unpacked.data(), unpacked.size(), 0};
      state = ZSTD_decompressStream(context.get(), &out, &in);
      if (ZSTD_isError(state) != 0) {
        throw Error(ErrorKind::kData, path, str("is damaged: ", ZSTD_getErrorName(state)), kAgain);
      }
      more = out.pos == out.size;
      if (out.pos > size - done) {
        throw Error(ErrorKind::kData, path, str("unpacks to more than the ", size, " bytes that its index announces"),
                    kAgain);
      }
      done += out.pos;
      sink(std::span(unpacked).first(out.pos));
      if (state == 0 && in.pos == in.size) break;
    }
  }
  if (state != 0) throw Error(ErrorKind::kData, path, str("is cut short after ", done, " unpacked bytes"), kAgain);
  if (done != size) {
    throw Error(ErrorKind::kData, path, str("unpacks to ", done, " bytes, its index announces ", size), kAgain);
  }
}

std::string zstd(std::string_view content, int level) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), level);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();
  packed.resize(size);
  return packed;
}

}  // namespace skytrain::data
