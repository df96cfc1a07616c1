// skytrain/image/jpeg_library.h
//
// libjpeg's headers, in the order that they need.

#pragma once
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
