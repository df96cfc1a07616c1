#include "skytrain/image/png_decoder.h"

#include <algorithm>
#include <cstdio>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {
namespace {

// No deflate stream unpacks to more than this many times its size (258 bytes for 2 bits).
constexpr uint64_t kDeflateMaxRatio = 1032;

// Memory that is kept between pictures: libpng needs some hundred KiB.
constexpr size_t kKeep = size_t{8} << 20;

constexpr uint8_t kEnd[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};

void pass_over_warning(png_structp, png_const_charp) {}

}  // namespace

// libpng leaves by longjmp, which skips destructors: the functions that call setjmp hold nothing that has one.
void PngDecoder::fail(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message_, sizeof decoder->message_, "%s", message);
  std::longjmp(decoder->failed_, 1);
}

void PngDecoder::read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder->rest_.size()) {
    decoder->truncated_ = true;
    png_error(png, "the file ends");
  }
  std::copy_n(decoder->rest_.data(), count, out);
  decoder->rest_ = decoder->rest_.subspan(count);
}

png_voidp PngDecoder::allocate(png_structp png, png_alloc_size_t size) {
  auto* decoder = static_cast<PngDecoder*>(png_get_mem_ptr(png));
  void* const piece = decoder->arena_.allocate(size);
  if (piece == nullptr) decoder->out_of_memory_ = true;
  return piece;
}

void PngDecoder::close(size_t keep) {
  png_destroy_read_struct(&png_, &info_, nullptr);
  png_ = nullptr;
  info_ = nullptr;
  truncated_ = out_of_memory_ = false;
  arena_.reset(keep);
}

bool PngDecoder::read_header() {
  if (setjmp(failed_) != 0) return false;
  png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, fail, pass_over_warning, this, allocate,
                                  [](png_structp, png_voidp) {});
  if (png_ == nullptr) return false;
  info_ = png_create_info_struct(png_);
  if (info_ == nullptr) return false;
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours come later, with a better message
  png_set_read_fn(png_, this, read_bytes);
  // Texts, profiles and the like, which may be compressed bombs, are passed over; transparency is read, to be dropped.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png_, info_);
  return true;
}

// Asks libpng for RGB of 8 bits.
bool PngDecoder::start() {
  if (setjmp(failed_) != 0) return false;
  const int type = png_get_color_type(png_, info_), depth = png_get_bit_depth(png_, info_);
  if (depth == 16) png_set_strip_16(png_);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
  if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
  if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) png_set_gray_to_rgb(png_);
  // A palette with transparency has four channels from here on.
  png_set_strip_alpha(png_);
  passes_ = png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

void PngDecoder::open(std::span<const uint8_t> encoded, const std::string& path) {
  close(kKeep);
  encoded_ = rest_ = encoded;
  path_ = &path;
  if (!read_header()) refuse();
  size_ = {int64_t{png_get_image_width(png_, info_)}, int64_t{png_get_image_height(png_, info_)}};
  check_picture_size(size_.width, size_.height, path);
  const uint64_t unpacked = png_get_rowbytes(png_, info_) * static_cast<uint64_t>(size_.height);
  if (unpacked / kDeflateMaxRatio > encoded.size()) {
    throw Error(ErrorKind::kData, path,
                str("is a damaged PNG picture: it announces ", size_.width, " x ", size_.height,
                    " pixels, which a file of ", encoded.size(), " bytes cannot hold"),
                "copy or download it again, or remove it");
  }
  if (!start()) refuse();
  if (png_get_rowbytes(png_, info_) != static_cast<size_t>(3 * size_.width)) {
    throw Error(ErrorKind::kInternal, path, "libpng gives lines of another length than asked for");
  }
}

bool PngDecoder::has_end() const {
  return encoded_.size() >= sizeof kEnd && std::equal(std::begin(kEnd), std::end(kEnd), encoded_.end() - sizeof kEnd);
}

bool PngDecoder::read_lines(uint8_t* out, int64_t count, int passes, bool end) {
  if (setjmp(failed_) != 0) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < count; ++y) png_read_row(png_, out + y * 3 * size_.width, nullptr);
  }
  if (end) png_read_end(png_, nullptr);
  return true;
}

void PngDecoder::read_line(uint8_t* line) {
  if (!read_lines(line, 1, 1, /*end=*/false)) refuse();
}

void PngDecoder::read_all(uint8_t* out) {
  if (!read_lines(out, size_.height, passes_, /*end=*/true)) refuse();
}

void PngDecoder::refuse() {
  if (png_ == nullptr || info_ == nullptr || out_of_memory_) {
    throw Error(ErrorKind::kEnvironment, *path_, "there is not enough memory to decode it",
                "use a machine with more memory, or scale the picture down");
  }
  throw Error(
      ErrorKind::kData, *path_,
      truncated_ ? "is a truncated PNG picture: a part of it is missing" : str("is a damaged PNG picture: ", message_),
      "copy or download it again, or remove it");
}

}  // namespace skytrain::image
