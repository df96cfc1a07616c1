#include "skytrain/data/encoded_pictures.h"

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"
#include "skytrain/image/resample.h"

namespace skytrain::data {

EncodedPictures::EncodedPictures(const recipe::DatasetSpec& spec, const OpenOptions& options)
    : size_(spec.size), resize_(spec.resize.value_or(spec.size)), exif_orientation_(spec.exif_orientation) {
  const std::string where = options.eval ? "data.eval" : "data.train";
  if (size_ < 1) throw Error(ErrorKind::kRecipe, where + ".size", str("is ", size_, ", expected 1 or more"));
  if (resize_ < size_) {
    throw Error(ErrorKind::kRecipe, where + ".resize",
                str("is ", resize_, ", less than the ", size_, " pixels of size that are cut from it"),
                "make resize at least size, or leave it out");
  }
}

const uint8_t* EncodedPictures::pixels(uint64_t index, Scratch& scratch) const {
  const std::span<const uint8_t> file = encoded(index, scratch);
  const image::Orientation orientation = this->orientation(file);
  image::Picture picture = image::decode_picture(file, scratch.path, scratch);
  if (!orientation.is_upright()) {
    const size_t bytes = static_cast<size_t>(3 * picture.width * picture.height);
    picture = image::turn_upright(picture, orientation, scratch.upright.room(bytes, scratch.path));
  }
  uint8_t* out = scratch.sample.room(static_cast<size_t>(3 * size_ * size_), scratch.path);
  image::resize_and_crop(picture, resize_, size_, scratch, scratch.path, out);
  scratch.give_back_excess();
  return out;
}

}  // namespace skytrain::data
