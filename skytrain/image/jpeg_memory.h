// skytrain/image/jpeg_memory.h
//
// libjpeg's memory from an arena: it makes some sixty pieces for a picture, a quarter of a MiB in all.

#pragma once
#include "skytrain/image/arena.h"
#include "skytrain/image/jpeg_library.h"

namespace skytrain::image {

// What `info` allocates from here on, of both pools, comes from `arena`, which is found through find_arena(info) and
// is the caller's to reset (after jpeg_abort). Lack of memory ends in info's error_exit(JERR_OUT_OF_MEMORY).
void use_arena(j_decompress_ptr info);

// To be defined by the owner of `info`.
Arena& find_arena(j_common_ptr info);

}  // namespace skytrain::image
