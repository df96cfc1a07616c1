// skytrain/data/image_listing.h
//
// Which pictures a folder of classes holds, without opening them: root/<class>/…/<file>, as
// torchvision.datasets.ImageFolder orders them. Immutable once made.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/data/file_list.h"

namespace skytrain::data {

class ImageListing {
 public:
  const std::vector<std::string>& classes() const { return classes_; }          // sorted by name (bytes)
  const std::vector<std::string>& passed_over() const { return passed_over_; }  // relative names, folders end with '/'

  uint64_t samples() const { return labels_.size(); }
  // Of sample i: by class, then by folder, then by file name.
  const FileList& files() const { return files_; }
  int32_t label(uint64_t i) const { return labels_[i]; }  // index of classes()
  uint64_t bytes_in_memory() const;

 private:
  friend class ImageLister;

  std::vector<std::string> classes_, passed_over_;
  FileList files_;
  std::vector<int32_t> labels_;
};

// A file is a picture when its name ends like one of JPEG or PNG, or its content begins like one. Hidden files and
// folders, what systems and tools leave behind (__MACOSX, @eaDir, …), files beside the class folders and files that are
// no pictures are passed over. Throws Error(kData): no such folder, no class folders, a class without pictures, a
// picture of another type (GIF, WebP, …), folders nested too deep.
ImageListing list_images(const FileSystem& fs, const std::string& root);

}  // namespace skytrain::data
