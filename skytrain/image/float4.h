// skytrain/image/float4.h
//
// Four floats at a time, by the compilers' vector types: choices are masks, which cost no branch.

#pragma once
#include <cstdint>

namespace skytrain::image {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));

inline Float4 all(float value) { return Float4{value, value, value, value}; }
inline Float4 choose(Int4 mask, Float4 yes, Float4 no) { return (Float4)((mask & (Int4)yes) | (~mask & (Int4)no)); }
inline Float4 smaller(Float4 a, Float4 b) { return choose(a < b, a, b); }
inline Float4 larger(Float4 a, Float4 b) { return choose(a > b, a, b); }
inline Float4 to_float(Int4 value) { return __builtin_convertvector(value, Float4); }
inline Int4 to_int(Float4 value) { return __builtin_convertvector(value, Int4); }  // towards 0

}  // namespace skytrain::image
