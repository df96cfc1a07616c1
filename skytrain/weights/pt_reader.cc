#include "skytrain/weights/pt_reader.h"

#include <algorithm>
#include <map>
#include <optional>

#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/state_dict.h"
#include "skytrain/weights/tensor_reader.h"
#include "skytrain/weights/torchscript.h"
#include "skytrain/weights/unpickler.h"
#include "skytrain/weights/zip_reader.h"

namespace skytrain::weights {
namespace {

using Kind = PickleKind;

// Copies are for views that are not contiguous, which fit into their storage unless they repeat it.
constexpr uint64_t kCopyFactor = 4, kCopyFloor = uint64_t{1} << 20;
// An entry of a pickle takes 100 bytes and more, unless its tensor has been there before; an array takes as much again.
constexpr uint64_t kLeastEntry = 32, kFewEntries = 1000;
constexpr std::string_view kLegacyMagic =
    "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";  // little-endian, as in the pickle
constexpr int64_t kLegacyProtocol = 1001;
constexpr char kBigEndian[] = "was written on a big-endian machine, which is not read";

PtContent arrays_of(const PickleValues& values, PickleRef root, uint64_t pickle_bytes, FindStorage find_storage,
                    uint64_t file_bytes, const Refusal& refuse) {
  const StateDict dict = find_state_dict(values, root, refuse);
  if (dict.entries.size() > kFewEntries + pickle_bytes / kLeastEntry) {
    refuse(str("names ", dict.entries.size(), " tensors in a pickle of ", pickle_bytes,
               " bytes, which torch.save never does: refused"));
  }
  TensorReader reader(values, std::move(find_storage), std::max(kCopyFloor, kCopyFactor * file_bytes), refuse);
  PtContent content;
  content.weights.note = dict.note;
  content.weights.ignored = dict.ignored;
  content.weights.arrays.reserve(dict.entries.size());
  for (const StateDict::Entry& entry : dict.entries) {
    content.weights.arrays.push_back(reader.read(entry.name, entry.tensor));
  }
  content.copies = reader.take_copies();
  return content;
}

// The one folder that has a data.pkl: torch.save calls it after the file, or "archive".
std::string_view archive_root(const ZipReader& zip, const Refusal& refuse) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::optional<std::string_view> root;
  for (const ZipMember& member : zip.members()) {
    if (!member.name.ends_with(kPickle)) continue;
    const std::string_view folder = member.name.substr(0, member.name.size() - kPickle.size());
    if (folder.empty() || folder.find('/') != folder.npos) continue;
    if (root) {
      refuse(str("holds two pickles, \"", printable(*root), "/data.pkl\" and \"", printable(member.name), "\""));
    }
    root = folder;
  }
  if (!root) {
    refuse(
        str("is a zip archive of ", zip.members().size(), " members, but none is <name>/data.pkl: not a PyTorch file"));
  }
  return *root;
}

// Pickles of the legacy form, one after the other.
class LegacyReader {
 public:
  LegacyReader(std::span<const std::byte> file, const Refusal& refuse) : file_(file), refuse_(refuse) {}

  void check_head() {
    const auto foreign = [&] {
      refuse_("is a Python pickle, but not a file of torch.save", "in Python: torch.save(model.state_dict(), FILE)");
    };
    {
      PickleValues values;
      const PickleRef magic = next(values);
      if (!values.is(magic, Kind::kLong) || values.text(magic) != kLegacyMagic) foreign();
      const PickleRef protocol = next(values);
      if (!values.is(protocol, Kind::kInt)) foreign();
      if (values.integer(protocol) != kLegacyProtocol) {
        refuse_(str("has version ", values.integer(protocol), " of the PyTorch file format (known: ", kLegacyProtocol,
                    ")"));
      }
    }
    PickleValues values;
    const PickleRef info = next(values);
    if (!values.is(info, Kind::kDict)) foreign();
    bool is_key = true, endian = false;
    for (const PickleRef ref : values.children(info)) {
      if (!is_key && endian && ref == PickleValues::kFalse) refuse_(kBigEndian);
      endian = is_key && values.is(ref, Kind::kString) && values.text(ref) == "little_endian";
      is_key = !is_key;
    }
  }

  uint64_t at() const { return at_; }

  PickleRef next(PickleValues& values) {
    Unpickler unpickler(file_, at_, file_.size(), values, refuse_);
    const PickleRef root = unpickler.run();
    at_ = unpickler.end();
    return root;
  }

  // The bytes of every storage, in the order of the keys' list.
  std::map<std::string_view, std::span<const std::byte>> storages(const PickleValues& values) {
    std::map<std::string_view, StorageClaim> claims;
    for (PickleRef ref = 0; ref < values.size(); ++ref) {
      if (!values.is(ref, Kind::kStorage)) continue;
      const StorageClaim claim = storage_claim(values, ref, refuse_);
      const auto [it, added] = claims.emplace(claim.key, claim);
      if (!added && (it->second.dtype != claim.dtype || it->second.bytes != claim.bytes)) {
        refuse_(str("describes storage \"", printable(claim.key), "\" in two ways"));
      }
    }
    PickleValues list;
    const PickleRef keys = next(list);
    if (!list.is(keys, Kind::kList)) refuse_("has no list of its storages");
    std::map<std::string_view, std::span<const std::byte>> storages;
    for (const PickleRef ref : list.children(keys)) {
      if (!list.is(ref, Kind::kString)) refuse_("lists a storage whose key is no string");
      const auto claim = claims.find(list.text(ref));
      if (claim == claims.end()) refuse_(str("lists a storage \"", printable(list.text(ref)), "\" that nothing uses"));
      if (!storages.emplace(claim->first, content(claim->second)).second) {
        refuse_(str("lists storage \"", printable(claim->first), "\" twice"));
      }
    }
    if (at_ != file_.size()) refuse_(str("has ", file_.size() - at_, " bytes after its last storage"), kFetchAgain);
    return storages;
  }

 private:
  std::span<const std::byte> content(const StorageClaim& claim) {
    const auto cut_short = [&](uint64_t needed) {
      refuse_(str("is cut short: storage \"", printable(claim.key), "\" needs ", needed, " bytes at byte ", at_, ", ",
                  file_.size() - at_, " are left"),
              kFetchAgain);
    };
    constexpr size_t kCountBytes = sizeof(uint64_t);
    if (file_.size() - at_ < kCountBytes) cut_short(kCountBytes);
    const auto count = load_le<uint64_t>(file_.data() + at_);
    if (count != claim.bytes / checkpoint::dtype_size(claim.dtype)) {
      refuse_(str("has ", count, " elements in storage \"", printable(claim.key), "\", its pickle says ",
                  claim.bytes / checkpoint::dtype_size(claim.dtype)));
    }
    at_ += kCountBytes;
    if (claim.bytes > file_.size() - at_) cut_short(claim.bytes);
    const auto bytes = file_.subspan(at_, claim.bytes);
    at_ += claim.bytes;
    return bytes;
  }

  std::span<const std::byte> file_;
  const Refusal& refuse_;
  uint64_t at_ = 0;
};

}  // namespace

PtContent read_pt_zip(std::span<const std::byte> file, const Refusal& refuse) {
  const ZipReader zip(file, refuse);
  if (names_torchscript(zip.members())) {
    refuse("is a TorchScript archive (a program and its weights), not a state dict",
           "in Python: torch.save(torch.jit.load(FILE).state_dict(), NEW_FILE)");
  }
  const std::string root(archive_root(zip, refuse));
  if (const ZipMember* order = zip.find(root + "/byteorder")) {
    const std::string_view word = as_text(zip.content(*order));
    if (word == "big") refuse(kBigEndian);
    if (word != "little") refuse(str("has byte order \"", printable(word, 20), "\" (known: little)"));
  }
  const ZipMember& pickle = *zip.find(root + "/data.pkl");
  zip.content(pickle);  // its CRC
  PickleValues values;
  Unpickler unpickler(file, pickle.data_at, pickle.data_at + pickle.size, values, refuse);
  const PickleRef object = unpickler.run();
  if (unpickler.end() != pickle.data_at + pickle.size) refuse("has something after the end of its pickle");

  const auto find_storage = [&](const StorageClaim& claim) {
    const std::string name = str(root, "/data/", claim.key);
    const ZipMember* const member = zip.find(name);
    if (member == nullptr) refuse(str("has no member \"", printable(name), "\", where a tensor's data should be"));
    if (member->size != claim.bytes) {
      refuse(str("has ", member->size, " bytes in member \"", printable(name), "\", its pickle says ", claim.bytes));
    }
    return zip.content(*member);
  };
  PtContent content = arrays_of(values, object, pickle.size, find_storage, file.size(), refuse);
  content.weights.format = Format::kPtZip;
  return content;
}

PtContent read_pt_legacy(std::span<const std::byte> file, const Refusal& refuse) {
  LegacyReader reader(file, refuse);
  reader.check_head();
  PickleValues values;
  const uint64_t begin = reader.at();
  const PickleRef object = reader.next(values);
  const uint64_t pickle_bytes = reader.at() - begin;
  const auto storages = reader.storages(values);
  const auto find_storage = [&](const StorageClaim& claim) {
    const auto it = storages.find(claim.key);
    if (it == storages.end()) refuse(str("does not list storage \"", printable(claim.key), "\", which a tensor uses"));
    return it->second;
  };
  PtContent content = arrays_of(values, object, pickle_bytes, find_storage, file.size(), refuse);
  content.weights.format = Format::kPtLegacy;
  return content;
}

}  // namespace skytrain::weights
