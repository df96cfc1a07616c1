#include "skytrain/image/jpeg_memory.h"

#include <cstring>

// An opaque type of libjpeg's interface: whoever makes these arrays decides what they are. Here they are held whole.
struct jvirt_barray_control {
  JBLOCKARRAY rows;
  size_t bytes_in_row;
  JDIMENSION defined;  // rows that have been written or zeroed; a header's claim of rows touches no memory
};

namespace skytrain::image {
namespace {

// libjpeg-turbo's SIMD code may write whole vectors beyond a line's end: its own allocator pads as much.
constexpr size_t kLinePadding = 128;

void* allocate(j_common_ptr info, size_t size) {
  void* const piece = find_arena(info).allocate(size);
  if (piece == nullptr) {
    info->err->msg_code = JERR_OUT_OF_MEMORY;
    info->err->msg_parm.i[0] = 0;
    info->err->error_exit(info);
  }
  return piece;
}

void* alloc_piece(j_common_ptr info, int /*pool*/, size_t size) { return allocate(info, size); }

// An array of rows, one after the other.
template <typename Row>
Row* alloc_rows(j_common_ptr info, size_t bytes_in_row, JDIMENSION count) {
  bytes_in_row = (bytes_in_row + kLinePadding - 1) / kLinePadding * kLinePadding;
  auto* rows = static_cast<Row*>(allocate(info, count * sizeof(Row)));
  auto* bytes = static_cast<uint8_t*>(allocate(info, bytes_in_row * count));
  for (JDIMENSION i = 0; i < count; ++i) rows[i] = reinterpret_cast<Row>(bytes + i * bytes_in_row);
  return rows;
}

JSAMPARRAY alloc_sarray(j_common_ptr info, int /*pool*/, JDIMENSION samples_in_row, JDIMENSION rows) {
  return alloc_rows<JSAMPROW>(info, samples_in_row * sizeof(JSAMPLE), rows);
}

JBLOCKARRAY alloc_barray(j_common_ptr info, int /*pool*/, JDIMENSION blocks_in_row, JDIMENSION rows) {
  return alloc_rows<JBLOCKROW>(info, blocks_in_row * sizeof(JBLOCK), rows);
}

// The arrays of coefficients of a picture with several scans.
jvirt_barray_ptr request_virt_barray(j_common_ptr info, int /*pool*/, boolean zeroed, JDIMENSION blocks_in_row,
                                     JDIMENSION rows, JDIMENSION /*access*/) {
  auto* array = static_cast<jvirt_barray_ptr>(allocate(info, sizeof(jvirt_barray_control)));
  array->rows = alloc_barray(info, JPOOL_IMAGE, blocks_in_row, rows);
  array->bytes_in_row = blocks_in_row * sizeof(JBLOCK);
  array->defined = zeroed != 0 ? 0 : rows;
  return array;
}

void realize_virt_arrays(j_common_ptr) {}

JBLOCKARRAY access_virt_barray(j_common_ptr, jvirt_barray_ptr array, JDIMENSION start, JDIMENSION count, boolean) {
  for (; array->defined < start + count; ++array->defined) {
    std::memset(array->rows[array->defined], 0, array->bytes_in_row);
  }
  return array->rows + start;
}

void free_nothing(j_common_ptr, int) {}

}  // namespace

void use_arena(j_decompress_ptr info) {
  jpeg_memory_mgr& memory = *info->mem;
  memory.alloc_small = alloc_piece;
  memory.alloc_large = alloc_piece;
  memory.alloc_sarray = alloc_sarray;
  memory.alloc_barray = alloc_barray;
  memory.request_virt_barray = request_virt_barray;
  memory.realize_virt_arrays = realize_virt_arrays;
  memory.access_virt_barray = access_virt_barray;
  memory.free_pool = free_nothing;
}

}  // namespace skytrain::image
