// skytrain/data/image_folder.h
//
// Format "imagefolder": path/<class>/<file>, JPEG or PNG, as torchvision.datasets.ImageFolder reads it. The files are
// listed when the set is opened, and read, decoded, scaled and cropped one by one when they are needed.

#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/image_listing.h"

namespace skytrain::data {

class ImageFolder final : public EncodedPictures {
 public:
  // Classes are the folders of spec.path, sorted by name; for an evaluation set those of options.train, by name.
  // The fingerprint covers class names and, of each file, name, size and label: reading a million files to hash them
  // would take longer than many a run. A picture replaced by another one of the same size goes unnoticed.
  static std::unique_ptr<ImageFolder> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                           const OpenOptions& options);

  const DatasetInfo& info() const override { return info_; }
  std::span<const uint8_t> encoded(uint64_t index, Scratch& scratch) const override;
  uint64_t encoded_bytes(uint64_t index) const override { return listing_.files().size(index); }
  int64_t label(uint64_t index) const override { return labels_[static_cast<size_t>(listing_.label(index))]; }
  std::string name(uint64_t index) const override;

 private:
  ImageFolder(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options);
  void name_classes(const OpenOptions& options);
  std::string make_fingerprint() const;

  const FileSystem& fs_;
  const std::string root_;
  const ImageListing listing_;
  std::vector<int64_t> labels_;  // of the listing's classes
  DatasetInfo info_;
};

}  // namespace skytrain::data
