// skytrain/data/encoded_pictures.h
//
// A data set of JPEG and PNG files of any size, wherever they lie. Samples are 3 x size x size pixels: the shorter side
// is scaled to `resize`, and size x size pixels are cut from the middle. Training can cut at random instead, from the
// encoded picture (encoded_filler.h), so that only what is seen is decoded.

#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "skytrain/data/dataset.h"
#include "skytrain/image/orientation.h"

namespace skytrain::data {

class EncodedPictures : public Dataset {
 public:
  // The file of a sample, in the data set's memory or in scratch.encoded: valid until scratch is used again.
  // scratch.path becomes its name for errors ("train/cat/17.jpg", "shard-000.tar: 17.jpg"). Thread-safe for different
  // scratches. Throws Error(kData) naming the file, Error(kEnvironment) for disk trouble.
  virtual std::span<const uint8_t> encoded(uint64_t index, Scratch& scratch) const = 0;

  // The size of that file, without reading it. Throws as encoded() does.
  virtual uint64_t encoded_bytes(uint64_t index) const = 0;

  const uint8_t* pixels(uint64_t index, Scratch& scratch) const override;
  const EncodedPictures* encoded_pictures() const override { return this; }

  // Of a sample's file: upright unless the set was opened with exif_orientation.
  image::Orientation orientation(std::span<const uint8_t> file) const {
    return exif_orientation_ ? image::exif_orientation(file) : image::Orientation{};
  }

  int64_t size() const { return size_; }
  int64_t resize() const { return resize_; }

 protected:
  // Throws Error(kRecipe) for a size or resize of spec that can't be.
  EncodedPictures(const recipe::DatasetSpec& spec, const OpenOptions& options);

 private:
  int64_t size_, resize_;
  bool exif_orientation_;
};

}  // namespace skytrain::data
