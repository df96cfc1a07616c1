#include "skytrain/data/image_folder.h"

#include <span>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/class_names.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/folder_text.h"

namespace skytrain::data {
namespace {

constexpr size_t kLongestName = 4096;

}  // namespace

std::unique_ptr<ImageFolder> ImageFolder::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                               const OpenOptions& options) {
  return std::unique_ptr<ImageFolder>(new ImageFolder(fs, spec, options));
}

ImageFolder::ImageFolder(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options)
    : EncodedPictures(spec, options), fs_(fs), root_(spec.path), listing_(list_images(fs, spec.path)) {
  info_.format = "imagefolder";
  info_.samples = listing_.samples();
  info_.channels = 3;
  info_.height = info_.width = size();
  info_.bytes_in_memory = listing_.bytes_in_memory();
  if (!listing_.passed_over().empty()) {
    const std::string names = printable(first_names(listing_.passed_over(), /*shown=*/20), kLongestName);
    info_.notes.push_back(root_ + ": passed over what is no class or picture: " + names);
  }
  name_classes(options);
  info_.fingerprint = make_fingerprint();
}

void ImageFolder::name_classes(const OpenOptions& options) {
  const std::vector<std::string>& own = listing_.classes();
  const ClassNames known(options.train != nullptr && !options.train->class_names.empty() ? options.train->class_names
                                                                                         : own);
  for (const std::string& name : own) labels_.push_back(known.label(name, root_ + "/" + name));
  info_.class_names = known.names();
  info_.classes = static_cast<int64_t>(known.names().size());
  check_class_count(info_, options, root_);
  std::vector<bool> seen(known.names().size());
  for (const int64_t label : labels_) seen[static_cast<size_t>(label)] = true;
  std::vector<std::string> missing;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) missing.push_back(known.names()[i]);
  }
  if (!missing.empty()) {
    info_.notes.push_back(root_ + ": has no pictures of these classes: " + first_names(std::move(missing)));
  }
}

std::string ImageFolder::make_fingerprint() const {
  FingerprintHash hash;
  hash.text("imagefolder");
  hash.number(info_.class_names.size());
  for (const std::string& name : info_.class_names) hash.text(name);
  hash.number(info_.samples);
  for (uint64_t i = 0; i < info_.samples; ++i) {
    hash.text(listing_.files().name(i));
    hash.number(listing_.files().size(i));
    hash.number(static_cast<uint64_t>(label(i)));
  }
  return hash.hex();
}

// Names on a disk are bytes of any kind; those that go into records are text.
std::string ImageFolder::name(uint64_t index) const { return printable(listing_.files().name(index), kLongestName); }

std::span<const uint8_t> ImageFolder::encoded(uint64_t index, Scratch& scratch) const {
  return listing_.files().read(fs_, root_, index, scratch);
}

}  // namespace skytrain::data
