#include "skytrain/image/jpeg_decoder.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/jpeg_memory.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {
namespace {

// Honest encoders write about ten; each costs as much time as the whole picture.
constexpr int kMaxScans = 500;

// Memory that is kept between pictures; enough for a progressive one of 10 million pixels.
constexpr size_t kKeep = size_t{64} << 20;

// Warnings after which libjpeg goes on with made-up (grey) blocks. The others are about things that no one sees, such
// as stray bytes before the end marker.
bool is_damage(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

}  // namespace

Arena& find_arena(j_common_ptr info) { return static_cast<JpegDecoder*>(info->client_data)->arena_; }

JpegEntropy& find_entropy(j_decompress_ptr info) { return static_cast<JpegDecoder*>(info->client_data)->entropy_; }

// libjpeg leaves by longjmp, which skips destructors: the functions that call setjmp hold nothing that has one.
void JpegDecoder::fail(j_common_ptr info) {
  auto* decoder = static_cast<JpegDecoder*>(info->client_data);
  decoder->code_ = info->err->msg_code;
  info->err->format_message(info, decoder->message_);
  std::longjmp(decoder->failed_, 1);
}

void JpegDecoder::take_message(j_common_ptr info, int level) {
  if (level < 0 && is_damage(info->err->msg_code)) fail(info);
}

void JpegDecoder::watch_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* decoder = static_cast<JpegDecoder*>(info->client_data);
  decoder->code_ = 0;
  std::snprintf(decoder->message_, sizeof decoder->message_, "it has more than %d scans", kMaxScans);
  std::longjmp(decoder->failed_, 1);
}

JpegDecoder::JpegDecoder() {
  info_.err = jpeg_std_error(&errors_);
  errors_.error_exit = fail;
  errors_.emit_message = take_message;
  errors_.output_message = [](j_common_ptr) {};
  progress_.progress_monitor = watch_scans;
  info_.client_data = this;
}

JpegDecoder::~JpegDecoder() {
  if (created_) jpeg_destroy_decompress(&info_);
}

bool JpegDecoder::create() {
  if (setjmp(failed_) != 0) return false;
  jpeg_create_decompress(&info_);
  info_.progress = &progress_;
  // The source belongs to the decompressor, so it is made before memory begins to come from the arena.
  static constexpr uint8_t kNothing[1] = {};
  jpeg_mem_src(&info_, kNothing, sizeof kNothing);
  use_arena(&info_);
  return true;
}

bool JpegDecoder::read_header() {
  if (setjmp(failed_) != 0) return false;
  jpeg_mem_src(&info_, encoded_.data(), encoded_.size());
  jpeg_read_header(&info_, TRUE);
  return true;
}

void JpegDecoder::close(size_t keep) {
  if (created_) jpeg_abort_decompress(&info_);
  // Tables of the picture before would be those of one that has none. They lie in the arena.
  for (JQUANT_TBL*& table : info_.quant_tbl_ptrs) table = nullptr;
  for (JHUFF_TBL*& table : info_.dc_huff_tbl_ptrs) table = nullptr;
  for (JHUFF_TBL*& table : info_.ac_huff_tbl_ptrs) table = nullptr;
  arena_.reset(keep);
}

void JpegDecoder::open(std::span<const uint8_t> encoded, const std::string& path) {
  encoded_ = encoded;
  path_ = &path;
  if (!created_ && !create()) refuse();
  created_ = true;
  close(kKeep);
  if (!read_header()) refuse();
  check_picture_size(info_.image_width, info_.image_height, path);
}

bool JpegDecoder::has_end() const {
  const uint8_t* const begin = info_.src->next_input_byte;
  for (const uint8_t* end = encoded_.data() + encoded_.size(); end - begin >= 2;) {
    const auto* found = static_cast<const uint8_t*>(memrchr(begin + 1, JPEG_EOI, static_cast<size_t>(end - begin - 1)));
    if (found == nullptr) return false;
    if (found[-1] == 0xff) return true;
    end = found;
  }
  return false;
}

bool JpegDecoder::is_complete() const {
  if (info_.progressive_mode == 0 || info_.coef_bits == nullptr) return true;
  for (int c = 0; c < info_.num_components; ++c) {
    const int* const missing = info_.coef_bits[c];  // bits; -1: all
    if (std::any_of(missing, missing + DCTSIZE2, [](int bits) { return bits != 0; })) return false;
  }
  return true;
}

bool JpegDecoder::start_decoding() {
  if (setjmp(failed_) != 0) return false;
  jpeg_start_decompress(&info_);
  if (JpegEntropy::can_decode(&info_)) entropy_.install(&info_, encoded_.data() + encoded_.size());
  return true;
}

void JpegDecoder::start(J_COLOR_SPACE space) {
  const bool cmyk = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  info_.out_color_space = cmyk ? JCS_CMYK : space;
  before_ = 0;
  if (!start_decoding()) refuse();
}

bool JpegDecoder::start_region() {
  if (setjmp(failed_) != 0) return false;
  if (columns_.width > 0) {
    JDIMENSION left = static_cast<JDIMENSION>(columns_.left), width = static_cast<JDIMENSION>(columns_.width);
    jpeg_crop_scanline(&info_, &left, &width);
    columns_.left = left;
  }
  if (columns_.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(columns_.top));
  return true;
}

void JpegDecoder::start(J_COLOR_SPACE space, const Region& region) {
  start(space);
  columns_ = region;
  // Colours of half the width are interpolated between neighbours, and otherwise at what looks like the picture's
  // edge (or in lines of one or two colour samples): a few more columns on both sides keep that away from the region.
  // jpeg_crop_scanline goes to the left as far as it has to, to the next boundary of an iMCU.
  constexpr int64_t kGuard = 4, kLeast = 8;
  const int64_t width = size().width;
  if (info_.max_h_samp_factor > 1) {
    const int64_t end = std::min(region.left + region.width + kGuard, width);
    columns_.left = std::max<int64_t>(std::min(region.left - 1, end - kLeast), 0);
    columns_.width = end - columns_.left;
  }
  if (columns_.width == width) columns_.left = columns_.width = 0;
  if (!start_region()) refuse();
  before_ = region.left - columns_.left;
}

bool JpegDecoder::read_lines(uint8_t** lines, int count, int& done) {
  if (setjmp(failed_) != 0) return false;
  done = static_cast<int>(jpeg_read_scanlines(&info_, lines, static_cast<JDIMENSION>(count)));
  return true;
}

int JpegDecoder::read(uint8_t** lines, int count) {
  int done = 0;
  if (!read_lines(lines, count, done)) refuse();
  if (done < 1) throw Error(ErrorKind::kInternal, *path_, "libjpeg gives fewer lines than the picture has");
  return done;
}

void JpegDecoder::refuse() {
  switch (code_) {
    case JERR_OUT_OF_MEMORY:
      throw Error(ErrorKind::kEnvironment, *path_, "there is not enough memory to decode it",
                  "use a machine with more memory, or scale the picture down");
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
      throw Error(ErrorKind::kData, *path_, "is a truncated JPEG picture: a part of it is missing",
                  "copy or download it again, or remove it");
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
      throw Error(ErrorKind::kData, *path_, str("is a JPEG picture of a kind that is not read: ", message_),
                  "convert it to a JPEG or PNG of 8 bits a channel, or remove it");
    default: {
      std::string_view what = message_;
      constexpr std::string_view kPrefix = "Corrupt JPEG data: ";
      if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
      throw Error(ErrorKind::kData, *path_, str("is a damaged JPEG picture: ", what),
                  "copy or download it again, or remove it");
    }
  }
}

}  // namespace skytrain::image
