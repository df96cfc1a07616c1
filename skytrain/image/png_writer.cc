#include "skytrain/image/png_writer.h"

#include <png.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {

std::string png_file(const uint8_t* pixels, const Size& size, int64_t channels, const std::string& where) {
  const bool fits = size.width > 0 && size.height > 0 && size.width <= PNG_UINT_31_MAX / 4 &&
                    size.height <= PNG_UINT_31_MAX / 4 && (channels == 1 || channels == 3);
  if (!fits) {
    throw Error(ErrorKind::kInternal, where,
                str("pixels of ", channels, " x ", size.height, " x ", size.width, " are no PNG"));
  }
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(size.width);
  png.height = static_cast<png_uint_32>(size.height);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(bytes, '\0');
  if (!png_image_write_to_memory(&png, file.data(), &bytes, /*convert_to_8bit=*/0, pixels, /*row_stride=*/0,
                                 /*colormap=*/nullptr)) {
    throw Error(ErrorKind::kEnvironment, where, str("can't be written as PNG: ", png.message),
                "look at the machine's memory");
  }
  file.resize(bytes);
  file.shrink_to_fit();
  return file;
}

}  // namespace skytrain::image
