#include "skytrain/image/jpeg_entropy.h"

#include <algorithm>
#include <cstring>

// Of libjpeg's inside; Debian installs it.
#define JPEG_INTERNALS
#include <jpegint.h>

#define ALWAYS_INLINE __attribute__((always_inline)) inline

namespace skytrain::image {
namespace {

// Where the coefficients of the zigzag order lie in a block. What a damaged file puts beyond the last goes there, as do
// the zeros that stand for an end of block.
struct NaturalOrder {
  uint8_t at[128];
  constexpr NaturalOrder() : at() {
    int row = 0, column = 0;
    bool up = true;
    for (int i = 0; i < 64; ++i) {
      at[i] = static_cast<uint8_t>(8 * row + column);
      if (up && column == 7) {
        ++row;
        up = false;
      } else if (up && row == 0) {
        ++column;
        up = false;
      } else if (!up && row == 7) {
        ++column;
        up = true;
      } else if (!up && column == 0) {
        ++row;
        up = true;
      } else {
        row += up ? -1 : 1;
        column += up ? 1 : -1;
      }
    }
    for (int i = 64; i < 128; ++i) at[i] = 63;
  }
};
constexpr NaturalOrder kNaturalOrder;
static_assert(kNaturalOrder.at[2] == 8 && kNaturalOrder.at[62] == 62 && kNaturalOrder.at[35] == 56);

bool has_ff(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  return ((~word - kOnes) & word & kHighs) != 0;
}

[[noreturn]] void fail(j_decompress_ptr info, int code) {
  info->err->msg_code = code;
  info->err->error_exit(reinterpret_cast<j_common_ptr>(info));
  __builtin_unreachable();
}

// A value of `size` bits at the top of `bits`: those with a leading 0 are negative, 2^size - 1 below what they say.
ALWAYS_INLINE int32_t extend(uint64_t bits, int size) {
  const auto value = static_cast<int32_t>(bits >> (63 - size) >> 1);
  const int32_t all = static_cast<int32_t>((uint32_t{1} << size) - 1);
  return value - (all & ~static_cast<int32_t>(static_cast<int64_t>(bits) >> 63));
}

}  // namespace

JpegCodes::Symbol JpegCodes::make(uint8_t symbol, int length) const {
  const int value = dc_ ? symbol : symbol & 15, zeros = dc_ ? 0 : symbol >> 4;
  const int advance = value == 0 && !dc_ && zeros != 15 ? kEndOfBlock : zeros + 1;
  return {static_cast<uint8_t>(length + value), static_cast<uint8_t>(length), static_cast<uint8_t>(value),
          static_cast<uint8_t>(advance)};
}

bool JpegCodes::set(const JHUFF_TBL& table, bool dc) {
  if (set_ && dc == dc_ && std::memcmp(counts_ + 1, table.bits + 1, 16) == 0 &&
      std::memcmp(symbols_, table.huffval, sizeof symbols_) == 0) {
    return false;
  }
  set_ = true;
  dc_ = dc;
  std::memcpy(counts_, table.bits, sizeof counts_);
  std::memcpy(symbols_, table.huffval, sizeof symbols_);
  uint32_t code = 0;
  int32_t symbol = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    first_[length] = symbol - static_cast<int32_t>(code);
    code += counts_[length];
    symbol += counts_[length];
    end_[length] = code << (16 - length);
  }
  return true;
}

void JpegCodes::fill(Symbol* symbols, int width) const {
  uint32_t filled = 0;
  int32_t symbol = 0;
  for (int length = 1; length <= width; ++length) {
    for (int i = 0; i < counts_[length]; ++i) {
      const Symbol made = make(symbols_[symbol++], length);
      const uint32_t count = uint32_t{1} << (width - length);
      std::fill_n(symbols + filled, count, made);
      filled += count;
    }
  }
  std::fill_n(symbols + filled, (size_t{1} << width) - filled, Symbol{});
}

JpegCodes::Symbol JpegCodes::find(uint32_t bits, int known) const {
  for (int length = known + 1; length <= 16; ++length) {
    if (bits >= end_[length]) continue;
    return make(symbols_[first_[length] + static_cast<int32_t>(bits >> (16 - length))], length);
  }
  return {};
}

void JpegDcTable::set(const JHUFF_TBL& table) {
  if (codes.set(table, /*dc=*/true)) codes.fill(symbols, kBits);
}

void JpegAcTable::set(const JHUFF_TBL& table) {
  if (!codes.set(table, /*dc=*/false)) return;
  constexpr uint32_t kCount = uint32_t{1} << kBits;
  JpegCodes::Symbol symbols[kCount];
  codes.fill(symbols, kBits);
  for (uint32_t bits = 0; bits < kCount; ++bits) {
    const JpegCodes::Symbol first = symbols[bits];
    Entry entry{.total = first.total,
                .code = first.code,
                .value = first.value,
                .advance = first.advance,
                .second_at = first.total,
                .second_value = 0,
                .advance_of_both = first.advance};
    if (first.total < kBits && first.advance != JpegCodes::kEndOfBlock) {
      const JpegCodes::Symbol second = symbols[bits << first.total & (kCount - 1)];
      if (second.total != 0 && first.total + second.code <= kBits) {
        entry.total = static_cast<uint8_t>(first.total + second.total);
        entry.second_at = static_cast<uint8_t>(first.total + second.code);
        entry.second_value = second.value;
        entry.advance_of_both = static_cast<uint8_t>(first.advance + second.advance);
      }
    }
    entries[bits] = entry;
  }
}

bool JpegEntropy::can_decode(j_decompress_ptr info) {
  return info->progressive_mode == 0 && info->arith_code == 0 && jpeg_has_multiple_scans(info) == 0;
}

void JpegEntropy::install(j_decompress_ptr info, const uint8_t* end) {
  block_count_ = info->blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const int component = info->MCU_membership[i];
    const jpeg_component_info& its = *info->cur_comp_info[component];
    dc_[its.dc_tbl_no].set(*info->dc_huff_tbl_ptrs[its.dc_tbl_no]);
    ac_[its.ac_tbl_no].set(*info->ac_huff_tbl_ptrs[its.ac_tbl_no]);
    blocks_[i] = {&dc_[its.dc_tbl_no], &ac_[its.ac_tbl_no], component};
  }
  std::memset(last_dc_, 0, sizeof last_dc_);
  bits_ = {.next = info->src->next_input_byte};
  end_ = end;
  mcus_to_restart_ = info->restart_interval;
  next_restart_ = 0;
  column_ = 0;
  // What is one MCU of a scan of one component may be a part of one column.
  crops_ = info->comps_in_scan > 1 || info->max_h_samp_factor == 1;
  bmi2_ = __builtin_cpu_supports("bmi2") != 0;
  info->entropy->decode_mcu = decode_mcu;
}

// By value: the address of what a loop works on would keep it out of the registers.
ALWAYS_INLINE JpegEntropy::Bits JpegEntropy::refill(Bits bits) const {
  if (end_ - bits.next >= 8) [[likely]] {
    uint64_t word;
    std::memcpy(&word, bits.next, sizeof word);
    if (!has_ff(word)) [[likely]] {
      bits.buffer |= __builtin_bswap64(word) >> bits.count;
      bits.next += (63 - bits.count) >> 3;
      bits.count |= 56;
      return bits;
    }
  }
  return refill_slowly(bits);
}

// 0xff followed by 0 is 0xff (and so is a row of them), anything else a marker: there the bits end.
__attribute__((noinline)) JpegEntropy::Bits JpegEntropy::refill_slowly(Bits bits) const {
  while (bits.count >= 0 && bits.count < 56 && bits.next < end_) {
    const uint8_t* after = bits.next + 1;
    if (*bits.next == 0xff) {
      while (after < end_ && *after == 0xff) ++after;
      if (after == end_ || *after != 0) break;
      ++after;
    }
    bits.buffer |= uint64_t{*bits.next} << (56 - bits.count);
    bits.count += 8;
    bits.next = after;
  }
  return bits;
}

void JpegEntropy::fail_at_end(j_decompress_ptr info, Bits bits) const {
  const uint8_t* at = bits.next;
  while (at < end_ && *at == 0xff) ++at;
  fail(info, at == end_ ? JWRN_JPEG_EOF : JWRN_HIT_MARKER);
}

__attribute__((noinline)) JpegCodes::Symbol JpegEntropy::long_code(j_decompress_ptr info, const JpegCodes& codes,
                                                                   int known, Bits bits) const {
  const JpegCodes::Symbol symbol = codes.find(static_cast<uint32_t>(bits.buffer >> 48), known);
  if (symbol.total == 0) {
    if (bits.count < 16) fail_at_end(info, bits);
    fail(info, JWRN_HUFF_BAD_CODE);
  }
  return symbol;
}

void JpegEntropy::restart(j_decompress_ptr info) {
  const uint8_t* at = bits_.next;
  while (at < end_ && (*at != 0xff || at + 1 == end_ || at[1] == 0 || at[1] == 0xff)) ++at;
  if (at == end_) fail(info, JWRN_JPEG_EOF);
  if (at[1] != JPEG_RST0 + next_restart_) fail(info, JWRN_MUST_RESYNC);
  bits_ = {.next = at + 2};
  next_restart_ = (next_restart_ + 1) % 8;
  mcus_to_restart_ = info->restart_interval;
  std::memset(last_dc_, 0, sizeof last_dc_);
}

template <bool store>
ALWAYS_INLINE JpegEntropy::Bits JpegEntropy::decode_dc(j_decompress_ptr info, const Block& block, JCOEF* out,
                                                       Bits bits) {
  JpegCodes::Symbol symbol = block.dc->symbols[bits.buffer >> (64 - JpegDcTable::kBits)];
  if (symbol.total == 0) [[unlikely]]
    symbol = long_code(info, block.dc->codes, JpegDcTable::kBits, bits);
  uint32_t& last = last_dc_[block.component];
  last += static_cast<uint32_t>(extend(bits.buffer << symbol.code, symbol.value));
  if constexpr (store) *out = static_cast<JCOEF>(last);
  return bits.without(symbol.total);
}

// One coefficient. k: where it is looked for, and where the next one will be.
template <bool store>
ALWAYS_INLINE JpegEntropy::Bits JpegEntropy::decode_ac(j_decompress_ptr info, const JpegAcTable& table, JCOEF* out,
                                                       int& k, Bits bits) const {
  const JpegAcTable::Entry& entry = table.entries[bits.buffer >> (64 - JpegAcTable::kBits)];
  JpegCodes::Symbol symbol{static_cast<uint8_t>(entry.code + entry.value), entry.code, entry.value, entry.advance};
  if (entry.total == 0) [[unlikely]]
    symbol = long_code(info, table.codes, JpegAcTable::kBits, bits);
  k += symbol.advance;
  if constexpr (store) {
    out[kNaturalOrder.at[k - 1]] = static_cast<JCOEF>(extend(bits.buffer << symbol.code, symbol.value));
  }
  return bits.without(symbol.total);
}

template <bool store>
ALWAYS_INLINE void JpegEntropy::decode_blocks_here(j_decompress_ptr info, JBLOCKROW* blocks) {
  // From here on a first coefficient may be the block's last.
  constexpr int kNearEnd = 48;
  Bits bits = bits_;
  for (int i = 0; i < block_count_; ++i) {
    const Block& block = blocks_[i];
    JCOEF* const out = store ? *blocks[i] : nullptr;
    bits = decode_dc<store>(info, block, out, refill(bits));
    const JpegAcTable& table = *block.ac;
    int k = 1;
    // What one look takes has at most kBits + 15 bits, and there are 56 after a refill: enough for two.
    static_assert(2 * (JpegAcTable::kBits + 15) <= 56);
    for (int look = 0; k < kNearEnd; look ^= 1) {
      if (look == 0) bits = refill(bits);
      const JpegAcTable::Entry& entry = table.entries[bits.buffer >> (64 - JpegAcTable::kBits)];
      if (entry.total == 0) [[unlikely]] {
        bits = refill(decode_ac<store>(info, table, out, k, bits));
        continue;
      }
      if constexpr (store) {
        // The second first: where there is none, it is a 0 in the place of the first.
        out[kNaturalOrder.at[k + entry.advance_of_both - 1]] =
            static_cast<JCOEF>(extend(bits.buffer << entry.second_at, entry.second_value));
        out[kNaturalOrder.at[k + entry.advance - 1]] =
            static_cast<JCOEF>(extend(bits.buffer << entry.code, entry.value));
      }
      k += entry.advance_of_both;
      bits = bits.without(entry.total);
    }
    while (k < 64) bits = decode_ac<store>(info, table, out, k, refill(bits));
  }
  if (bits.count < 0) [[unlikely]]
    fail_at_end(info, bits);
  bits_ = bits;
}

template <bool store>
void JpegEntropy::decode_blocks(j_decompress_ptr info, JBLOCKROW* blocks) {
  decode_blocks_here<store>(info, blocks);
}

template <bool store>
__attribute__((target("bmi2"))) void JpegEntropy::decode_blocks_bmi2(j_decompress_ptr info, JBLOCKROW* blocks) {
  decode_blocks_here<store>(info, blocks);
}

// blocks: null when the MCU is not wanted.
boolean JpegEntropy::decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  JpegEntropy& self = find_entropy(info);
  if (info->restart_interval != 0 && self.mcus_to_restart_-- == 0) {
    self.restart(info);
    --self.mcus_to_restart_;
  }
  const jpeg_decomp_master& master = *info->master;
  const bool shown = blocks != nullptr &&
                     (!self.crops_ || (self.column_ >= master.first_iMCU_col && self.column_ <= master.last_iMCU_col));
  if (++self.column_ == info->MCUs_per_row) self.column_ = 0;
  if (self.bmi2_) {
    shown ? self.decode_blocks_bmi2<true>(info, blocks) : self.decode_blocks_bmi2<false>(info, nullptr);
  } else {
    shown ? self.decode_blocks<true>(info, blocks) : self.decode_blocks<false>(info, nullptr);
  }
  return TRUE;
}

}  // namespace skytrain::image
