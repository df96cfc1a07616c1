#include "skytrain/data/gzip.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::data {
namespace {

// zlib as a stream over a buffer in memory, one gzip member after the other. libdeflate is several times faster, but
// cannot stop early and does not say what is wrong.
class Inflater {
 public:
  enum class Status { kMore, kEnd, kTruncated, kGarbage, kDamaged };

  explicit Inflater(std::span<const uint8_t> compressed) : input_(compressed) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();  // 15: largest window, 16: gzip
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` as far as possible; sets got. kMore: there may be more output.
  Status read(std::span<uint8_t> out, size_t& got) {
    got = 0;
    while (got < out.size()) {
      if (at_member_start_) {
        if (used_ == input_.size()) return used_ == 0 ? Status::kTruncated : Status::kEnd;
        if (!is_gzip(input_.subspan(used_))) return used_ == 0 ? Status::kTruncated : Status::kGarbage;
        at_member_start_ = false;
      }
      // avail_in and avail_out are 32 bits wide.
      const size_t in = std::min<size_t>(input_.size() - used_, 1u << 30);
      const size_t room = std::min<size_t>(out.size() - got, 1u << 30);
      stream_.next_in = const_cast<uint8_t*>(input_.data() + used_);
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = out.data() + got;
      stream_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      used_ += in - stream_.avail_in;
      got += room - stream_.avail_out;
      if (result == Z_STREAM_END) {
        at_member_start_ = true;
        inflateReset(&stream_);
      } else if (result == Z_BUF_ERROR || (result == Z_OK && used_ == input_.size() && stream_.avail_out != 0)) {
        return Status::kTruncated;
      } else if (result != Z_OK) {
        return Status::kDamaged;
      }
    }
    return Status::kMore;
  }

  uint64_t used() const { return used_; }
  std::string_view message() const { return stream_.msg ? stream_.msg : "unknown error"; }

 private:
  std::span<const uint8_t> input_;
  size_t used_ = 0;
  bool at_member_start_ = true;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::span<const uint8_t> head) { return head.size() >= 2 && head[0] == 0x1f && head[1] == 0x8b; }

std::vector<uint8_t> gunzip_head(std::span<const uint8_t> compressed, size_t count) {
  std::vector<uint8_t> head(count);
  size_t got = 0;
  Inflater(compressed).read(head, got);
  head.resize(got);
  return head;
}

void gunzip_exactly(std::span<const uint8_t> compressed, std::span<uint8_t> out, const std::string& file) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!decompressor) throw std::bad_alloc();
  size_t used = 0, done = 0;
  do {
    size_t in = 0, got = 0;
    const libdeflate_result result =
        libdeflate_gzip_decompress_ex(decompressor.get(), compressed.data() + used, compressed.size() - used,
                                      out.data() + done, out.size() - done, &in, &got);
    if (result != LIBDEFLATE_SUCCESS) break;
    used += in;
    done += got;
  } while (used < compressed.size());
  if (used != compressed.size() || done != out.size() || compressed.empty()) {
    throw Error(ErrorKind::kData, file, explain_bad_gzip(compressed, out.size()), "download or copy the file again");
  }
}

namespace {

// Reads to the end, or to where the damage is; total: bytes unpacked. Stops when there are more than `limit`.
Inflater::Status read_through(Inflater& inflater, uint64_t limit, uint64_t& total) {
  std::vector<uint8_t> window(size_t{1} << 16);
  Inflater::Status status = Inflater::Status::kMore;
  for (total = 0; status == Inflater::Status::kMore && total <= limit;) {
    size_t got = 0;
    status = inflater.read(window, got);
    total += got;
  }
  return status;
}

// Of a file that can't be unpacked.
std::string explain(const Inflater& inflater, Inflater::Status status, uint64_t compressed, const std::string& where) {
  switch (status) {
    case Inflater::Status::kTruncated:
      return "is a truncated gzip file: it ends after " + where;
    case Inflater::Status::kGarbage:
      return str("has ", compressed - inflater.used(), " bytes of trailing garbage after its gzip data");
    default:
      if (inflater.message() == "incorrect data check") {
        return "is a damaged gzip file: CRC error (the content does not match its checksum)";
      }
      return str("is a damaged gzip file: ", inflater.message(), " near byte ", inflater.used());
  }
}

}  // namespace

uint64_t gunzip_size(std::span<const uint8_t> compressed, uint64_t limit, const std::string& file) {
  Inflater inflater(compressed);
  uint64_t total = 0;
  const Inflater::Status status = read_through(inflater, limit, total);
  if (total > limit) {
    throw Error(ErrorKind::kData, file, str("unpacks to more than ", human_bytes(static_cast<double>(limit))),
                "no file of this format is so large");
  }
  if (status == Inflater::Status::kEnd) return total;
  throw Error(ErrorKind::kData, file, explain(inflater, status, compressed.size(), str(total, " decompressed bytes")),
              "download or copy the file again");
}

std::string explain_bad_gzip(std::span<const uint8_t> compressed, uint64_t expected_size) {
  Inflater inflater(compressed);
  uint64_t total = 0;
  const Inflater::Status status = read_through(inflater, expected_size, total);
  if (total > expected_size) return str("holds more than the ", expected_size, " bytes that its header announces");
  if (status != Inflater::Status::kEnd) {
    return explain(inflater, status, compressed.size(), str(total, " of ", expected_size, " decompressed bytes"));
  }
  if (total < expected_size) {
    return str("holds ", total, " decompressed bytes, its header announces ", expected_size);
  }
  return "is a damaged gzip file";
}

}  // namespace skytrain::data
