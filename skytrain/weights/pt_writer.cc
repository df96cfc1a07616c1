// write_pt: the pickle that torch.save makes of an OrderedDict of tensors (protocol 2), and the zip around it.

#include <map>
#include <string>
#include <tuple>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/weights.h"
#include "skytrain/weights/zip_writer.h"

namespace skytrain::weights {
namespace {

using checkpoint::Dtype;
using checkpoint::NamedArray;

constexpr std::string_view kRoot = "archive/";

std::string_view storage_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return "DoubleStorage";
    case Dtype::kF32:
      return "FloatStorage";
    case Dtype::kF16:
      return "HalfStorage";
    case Dtype::kBF16:
      return "BFloat16Storage";
    case Dtype::kI64:
      return "LongStorage";
    case Dtype::kI32:
      return "IntStorage";
    case Dtype::kI16:
      return "ShortStorage";
    case Dtype::kI8:
      return "CharStorage";
    case Dtype::kU8:
      return "ByteStorage";
    case Dtype::kBool:
      return "BoolStorage";
  }
  throw Error(ErrorKind::kInternal, "", "unknown dtype");
}

// Opcodes as in pickletools; every name is written out where it stands, nothing is memoized.
class Pickler {
 public:
  Pickler() { out_ = "\x80\x02"; }

  void op(char opcode) { out_ += opcode; }
  void global(std::string_view module, std::string_view name) { out_ += str("c", module, "\n", name, "\n"); }
  void text(std::string_view text) {
    out_ += 'X';
    append_le<uint32_t>(out_, static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void number(uint64_t value) {
    if (value < (uint64_t{1} << 31)) {
      out_ += 'J';
      append_le<uint32_t>(out_, static_cast<uint32_t>(value));
    } else {
      out_ += "\x8a\x08";  // LONG1 of 8 bytes; below 2^63
      append_le<uint64_t>(out_, value);
    }
  }
  void numbers(std::span<const int64_t> values) {
    op('(');
    for (const int64_t value : values) number(static_cast<uint64_t>(value));
    op('t');
  }
  void empty_ordered_dict() {
    global("collections", "OrderedDict");
    out_ += ")R";
  }
  void tensor(const NamedArray& array, uint64_t key) {
    std::vector<int64_t> strides(array.shape.size());
    int64_t stride = 1;
    for (size_t i = array.shape.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= std::max<int64_t>(array.shape[i], 1);
    }
    global("torch._utils", "_rebuild_tensor_v2");
    out_ += "((";
    text("storage");
    global("torch", storage_type(array.dtype));
    text(std::to_string(key));
    text("cpu");
    number(array.bytes.size() / checkpoint::dtype_size(array.dtype));
    out_ += "tQ";
    number(0);  // offset
    numbers(array.shape);
    numbers(strides);
    op('\x89');            // requires_grad: False
    empty_ordered_dict();  // hooks
    out_ += "tR";
  }
  const std::string& finish() {
    op('.');
    return out_;
  }

 private:
  std::string out_;
};

void check(std::span<const NamedArray> arrays) {
  std::map<std::string_view, int> names;
  for (const NamedArray& array : arrays) {
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorKind::kInternal, "", str("tensor \"", printable(array.name), "\" cannot be written: ", why));
    };
    if (++names[array.name] > 1) refuse("another has its name");
    if (invalid_utf8_at(array.name) != std::string::npos) refuse("its name is not UTF-8");
    // The product without the zeros, which the strides need too.
    uint64_t bytes = checkpoint::dtype_size(array.dtype);
    bool empty = false;
    for (const int64_t extent : array.shape) {
      empty |= extent == 0;
      if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent == 0 ? 1 : extent), &bytes) ||
          bytes > static_cast<uint64_t>(INT64_MAX)) {
        refuse("its shape is impossible");
      }
    }
    if (array.bytes.size() != (empty ? 0 : bytes)) refuse("its bytes do not fit its shape");
  }
}

}  // namespace

uint64_t write_pt(WritableFile& out, std::span<const NamedArray> arrays) {
  check(arrays);
  std::map<std::tuple<const std::byte*, size_t, Dtype>, uint64_t> keys;  // of bytes that are there already
  std::vector<std::span<const std::byte>> storages;
  Pickler pickler;
  pickler.empty_ordered_dict();
  pickler.op('(');
  for (const NamedArray& array : arrays) {
    uint64_t key = storages.size();
    if (!array.bytes.empty()) {
      key = keys.emplace(std::tuple(array.bytes.data(), array.bytes.size(), array.dtype), key).first->second;
    }
    if (key == storages.size()) storages.push_back(array.bytes);
    pickler.text(array.name);
    pickler.tensor(array, key);
  }
  pickler.op('u');

  ZipWriter zip(out);
  zip.add(str(kRoot, "data.pkl"), pickler.finish());
  zip.add(str(kRoot, "byteorder"), "little");
  for (size_t key = 0; key < storages.size(); ++key) zip.add(str(kRoot, "data/", key), storages[key]);
  zip.add(str(kRoot, "version"), "3\n");
  return zip.finish();
}

}  // namespace skytrain::weights
