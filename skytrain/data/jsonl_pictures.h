// skytrain/data/jsonl_pictures.h
//
// A JSONL file whose records name files of pictures, as metadata.jsonl of Hugging Face's ImageFolder does: spec.image
// is the key of the file, relative to the JSONL's own folder, spec.target that of the class. Other keys are left alone.

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/file_list.h"

namespace skytrain::data {

class JsonlPictures final : public EncodedPictures {
 public:
  // Samples are in the order of the lines. Classes are whole numbers, the labels themselves, or texts, which are
  // sorted; for an evaluation set, texts are the training set's class names. Files must be there; they are opened when
  // they are needed. Links in the folder are followed, but a name that is absolute or has ".." is refused. The
  // fingerprint covers class names and, of each file, name, size and label. A sample takes 20 bytes of memory and its
  // name.
  static std::unique_ptr<JsonlPictures> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                             const OpenOptions& options);

  const DatasetInfo& info() const override { return info_; }
  std::span<const uint8_t> encoded(uint64_t index, Scratch& scratch) const override;
  uint64_t encoded_bytes(uint64_t index) const override { return files_.size(index); }
  int64_t label(uint64_t index) const override { return labels_[index]; }
  std::string name(uint64_t index) const override;

 private:
  JsonlPictures(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options);
  void read(const recipe::DatasetSpec& spec, const OpenOptions& options);
  std::string make_fingerprint() const;

  const FileSystem& fs_;
  std::string folder_;
  FileList files_;
  std::vector<int32_t> labels_;
  DatasetInfo info_;
};

}  // namespace skytrain::data
