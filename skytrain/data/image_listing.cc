#include "skytrain/data/image_listing.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"
#include "skytrain/image/picture.h"

namespace skytrain::data {
namespace {

constexpr int kMaxDepth = 32;  // deeper than anyone sorts pictures: a link that leads back up

constexpr std::string_view kReadSuffixes[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
constexpr std::string_view kOtherSuffixes[] = {".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".heif", ".avif",
                                               ".ppm", ".pgm", ".pbm",  ".pnm", ".jp2",  ".jxl",  ".tga",  ".psd"};
// Left behind by macOS, NAS boxes, Windows, file systems and Python.
constexpr std::string_view kLeftovers[] = {"__MACOSX",   "@eaDir",     "$RECYCLE.BIN", "System Volume Information",
                                           "lost+found", "__pycache__"};
constexpr std::string_view kSplits[] = {"train", "training", "val", "valid", "validation", "test", "testing", "eval"};

bool is_hidden(std::string_view name) {
  return name.starts_with('.') || std::find(std::begin(kLeftovers), std::end(kLeftovers), name) != std::end(kLeftovers);
}

// ".jpg" of "cat/IMG.JPG"; "" when there is none.
std::string suffix_of(std::string_view name) {
  std::string suffix(name.substr(std::min(name.find_last_of('.'), name.size())));
  for (char& c : suffix) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return suffix;
}

template <size_t size>
bool is_one_of(const std::string& suffix, const std::string_view (&suffixes)[size]) {
  return std::find(std::begin(suffixes), std::end(suffixes), suffix) != std::end(suffixes);
}

}  // namespace

class ImageLister {
 public:
  ImageLister(const FileSystem& fs, const std::string& root) : fs_(fs), root_(root) {}

  ImageListing list() {
    const std::optional<FileInfo> info = fs_.stat(root_);
    const std::string expected = "a folder with one folder of pictures for each class";
    if (!info) throw Error(ErrorKind::kData, root_, "no such folder", "expected " + expected);
    if (info->type != FileInfo::Type::kDirectory)
      throw Error(ErrorKind::kData, root_, "is a file, expected " + expected);
    for (const std::string& name : fs_.list(root_)) {
      const std::optional<FileInfo> entry = fs_.stat(root_ + "/" + name);
      const bool folder = entry && entry->type == FileInfo::Type::kDirectory;
      if (folder && !is_hidden(name)) {
        if (invalid_utf8_at(name) != std::string::npos) {
          throw Error(ErrorKind::kData, root_ + "/" + name, "the name of this class is not UTF-8", "rename the folder");
        }
        list_.classes_.push_back(name);
      } else {
        pass_over(name, folder);
      }
    }
    if (list_.classes_.empty()) {
      throw Error(ErrorKind::kData, root_, "has no class folders, expected " + expected, folder_content(fs_, root_));
    }
    refuse_splits();
    for (size_t c = 0; c < list_.classes_.size(); ++c) list_class(list_.classes_[c], static_cast<int32_t>(c));
    if (others_ > 0) {
      throw Error(ErrorKind::kData, root_ + "/" + first_other_,
                  first_other_description_ + ": only JPEG and PNG pictures are read",
                  others_ == 1
                      ? "convert it to PNG or JPEG, or remove it"
                      : str("convert it and ", others_ - 1, " more such files to PNG or JPEG, or remove them"));
    }
    return std::move(list_);
  }

 private:
  struct File {
    std::string name;
    uint64_t size = 0;
  };
  struct Folder {
    std::string path;  // relative to the root
    std::vector<File> files;
  };

  void pass_over(const std::string& name, bool folder) { list_.passed_over_.push_back(name + (folder ? "/" : "")); }

  // The folder above the one that is meant: its "classes" would be train and val.
  void refuse_splits() const {
    const auto is_split = [](const std::string& name) {
      return std::find(std::begin(kSplits), std::end(kSplits), name) != std::end(kSplits);
    };
    if (!std::all_of(list_.classes_.begin(), list_.classes_.end(), is_split)) return;
    throw Error(ErrorKind::kData, root_,
                "holds splits of a data set (" + join(list_.classes_, ", ") + "), expected a folder for each class",
                "give the path of one split: " + root_ + "/" + list_.classes_.front());
  }

  void list_class(const std::string& name, int32_t label) {
    std::vector<Folder> folders;
    walk(name, 1, folders);
    std::sort(folders.begin(), folders.end(), [](const Folder& a, const Folder& b) { return a.path < b.path; });
    const uint64_t before = list_.samples(), others_before = others_;
    std::string path;
    for (const Folder& folder : folders) {
      for (const File& file : folder.files) {
        path.assign(folder.path).append("/").append(file.name);
        if (is_picture(path, file)) {
          add(path, file.size, label);
        } else {
          pass_over(path, false);
        }
      }
    }
    if (list_.samples() == before && others_ == others_before) {
      throw Error(ErrorKind::kData, root_ + "/" + name, "holds no pictures, so its class has no samples",
                  "put JPEG or PNG pictures into it, or remove it; " + folder_content(fs_, root_ + "/" + name));
    }
  }

  void walk(const std::string& path, int depth, std::vector<Folder>& folders) {
    if (depth > kMaxDepth) {
      throw Error(ErrorKind::kData, root_ + "/" + path, str("lies more than ", kMaxDepth, " folders deep"),
                  "look for a link that leads back to a folder above it");
    }
    Folder folder{.path = path, .files = {}};
    for (std::string& name : fs_.list(root_ + "/" + path)) {
      const std::string own = str(path, "/", name);
      const std::optional<FileInfo> info = fs_.stat(root_ + "/" + own);
      const bool is_folder = info && info->type == FileInfo::Type::kDirectory;
      if (is_hidden(name) || !info || info->type == FileInfo::Type::kOther) {
        pass_over(own, is_folder);
      } else if (is_folder) {
        walk(own, depth + 1, folders);
      } else {
        folder.files.push_back({std::move(name), info->size});
      }
    }
    folders.push_back(std::move(folder));
  }

  // By the end of its name, so that a million files need not be opened; where that says nothing, by its content.
  bool is_picture(const std::string& path, const File& file) {
    const std::string suffix = suffix_of(file.name);
    if (is_one_of(suffix, kReadSuffixes)) return true;
    std::array<uint8_t, 32> bytes{};
    const std::span<uint8_t> head = std::span(bytes).first(std::min<size_t>(bytes.size(), file.size));
    fs_.read_range(root_ + "/" + path, 0, std::as_writable_bytes(head));
    if (image::is_jpeg(head) || image::is_png(head)) return true;
    const std::string description = describe_content(head);
    const bool by_content = description.ends_with(" image");
    if ((by_content || is_one_of(suffix, kOtherSuffixes)) && others_++ == 0) {
      first_other_ = path;
      first_other_description_ = by_content ? description : "is a " + suffix + " file";
    }
    return false;
  }

  void add(const std::string& path, uint64_t size, int32_t label) {
    list_.files_.add(path, size);
    list_.labels_.push_back(label);
  }

  const FileSystem& fs_;
  const std::string& root_;
  ImageListing list_;
  uint64_t others_ = 0;  // pictures of types that are not read
  std::string first_other_, first_other_description_;
};

uint64_t ImageListing::bytes_in_memory() const { return files_.bytes_in_memory() + 4 * labels_.capacity(); }

ImageListing list_images(const FileSystem& fs, const std::string& root) { return ImageLister(fs, root).list(); }

}  // namespace skytrain::data
