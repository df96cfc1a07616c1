// skytrain/image/jpeg_entropy.h
//
// The Huffman decoding of sequential JPEGs (ITU T.81 F.2.2), in the place of libjpeg-turbo's own, which takes three
// quarters of the time of a picture: here one look into a table gives two coefficients, 64 bits are read at a time, and
// of blocks that are not shown only the lengths are looked at. The coefficients are the same. What libjpeg
// warns of and then makes up is an error here: JWRN_HUFF_BAD_CODE, JWRN_HIT_MARKER, JWRN_JPEG_EOF or JWRN_MUST_RESYNC,
// by info's error_exit(). Not thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>

#include "skytrain/image/jpeg_library.h"

namespace skytrain::image {

// One of a picture's Huffman tables: its symbols in the order of their codes.
class JpegCodes {
 public:
  // A code and the value after it. total: bits of both; 0: there is none. advance: coefficients that it takes: one more
  // than the zeros before its own, kEndOfBlock for the end of a block.
  struct Symbol {
    uint8_t total, code, value, advance;
  };
  static constexpr uint8_t kEndOfBlock = 64;

  // False: the table is that of the last call. REQUIRES that libjpeg has found it valid.
  bool set(const JHUFF_TBL& table, bool dc);
  // That which these 16 bits begin with, if its code is longer than `known` bits.
  Symbol find(uint32_t bits, int known) const;
  // Of each `width` bits, the symbol that they begin with if its code is not longer.
  void fill(Symbol* symbols, int width) const;

 private:
  Symbol make(uint8_t symbol, int length) const;

  uint32_t end_[17] = {};   // of the codes of each length, followed by zeros to 16 bits
  int32_t first_[17] = {};  // the symbol of code c of a length is symbols_[first_[length] + c]
  uint8_t counts_[17] = {}, symbols_[256] = {};
  bool dc_ = false, set_ = false;
};

struct JpegDcTable {
  static constexpr int kBits = 10;
  JpegCodes codes;
  JpegCodes::Symbol symbols[size_t{1} << kBits];
  void set(const JHUFF_TBL& table);
};

struct JpegAcTable {
  static constexpr int kBits = 11;
  // What the next kBits bits begin with: one symbol, or two when the second's code is among them too.
  struct alignas(8) Entry {
    uint8_t total;            // bits of both; 0: a longer code
    uint8_t code, value;      // of the first, as in Symbol
    uint8_t advance;          // of the first
    uint8_t second_at;        // bits before the second's value
    uint8_t second_value;     // its bits; 0 when there is none
    uint8_t advance_of_both;  // equals advance when there is none
  };
  JpegCodes codes;
  alignas(64) Entry entries[size_t{1} << kBits];
  void set(const JHUFF_TBL& table);
};

class JpegEntropy {
 public:
  // Whether pictures of this kind are decoded here. info: between jpeg_start_decompress and the first line.
  static bool can_decode(j_decompress_ptr info);
  // Takes the place of libjpeg's decoder for this picture. end: of the file.
  void install(j_decompress_ptr info, const uint8_t* end);

 private:
  friend JpegEntropy& find_entropy(j_decompress_ptr info);
  struct Block {
    const JpegDcTable* dc;
    const JpegAcTable* ac;
    int component;
  };
  // The next bits, from the highest; `count` of them are valid, the others are 0 or right. Negative: read beyond the
  // end.
  struct Bits {
    uint64_t buffer = 0;
    int64_t count = 0;
    const uint8_t* next = nullptr;
    Bits without(int taken) const { return {buffer << taken, count - taken, next}; }
  };

  template <bool store>
  void decode_blocks(j_decompress_ptr info, JBLOCKROW* blocks);
  template <bool store>
  void decode_blocks_bmi2(j_decompress_ptr info, JBLOCKROW* blocks);
  template <bool store>
  Bits decode_dc(j_decompress_ptr info, const Block& block, JCOEF* out, Bits bits);
  template <bool store>
  Bits decode_ac(j_decompress_ptr info, const JpegAcTable& table, JCOEF* out, int& k, Bits bits) const;
  template <bool store>
  void decode_blocks_here(j_decompress_ptr info, JBLOCKROW* blocks);
  Bits refill(Bits bits) const;
  Bits refill_slowly(Bits bits) const;
  JpegCodes::Symbol long_code(j_decompress_ptr info, const JpegCodes& codes, int known, Bits bits) const;
  [[noreturn]] void fail_at_end(j_decompress_ptr info, Bits bits) const;
  void restart(j_decompress_ptr info);
  static boolean decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks);

  JpegDcTable dc_[NUM_HUFF_TBLS];
  JpegAcTable ac_[NUM_HUFF_TBLS];
  Block blocks_[D_MAX_BLOCKS_IN_MCU] = {};
  int block_count_ = 0;
  uint32_t last_dc_[MAX_COMPS_IN_SCAN] = {};
  Bits bits_;
  const uint8_t* end_ = nullptr;
  uint32_t mcus_to_restart_ = 0;
  int next_restart_ = 0;
  uint32_t column_ = 0;  // of the next MCU
  bool crops_ = false, bmi2_ = false;
};

// To be defined by the owner of `info`.
JpegEntropy& find_entropy(j_decompress_ptr info);

}  // namespace skytrain::image
