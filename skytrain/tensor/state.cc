#include "skytrain/tensor/state.h"

#include <ATen/ops/from_blob.h>

#include <memory>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::tensor {
namespace {

struct DtypePair {
  at::ScalarType type;
  checkpoint::Dtype dtype;
};

constexpr DtypePair kDtypes[] = {
    {at::kDouble, checkpoint::Dtype::kF64}, {at::kFloat, checkpoint::Dtype::kF32},
    {at::kHalf, checkpoint::Dtype::kF16},   {at::kBFloat16, checkpoint::Dtype::kBF16},
    {at::kLong, checkpoint::Dtype::kI64},   {at::kInt, checkpoint::Dtype::kI32},
    {at::kShort, checkpoint::Dtype::kI16},  {at::kChar, checkpoint::Dtype::kI8},
    {at::kByte, checkpoint::Dtype::kU8},    {at::kBool, checkpoint::Dtype::kBool},
};

}  // namespace

checkpoint::Dtype to_dtype(at::ScalarType type) {
  for (const DtypePair& pair : kDtypes)
    if (pair.type == type) return pair.dtype;
  throw Error(ErrorKind::kInternal, "", str("no safetensors dtype for ", c10::toString(type)));
}

at::ScalarType to_scalar_type(checkpoint::Dtype dtype) {
  for (const DtypePair& pair : kDtypes)
    if (pair.dtype == dtype) return pair.type;
  throw Error(ErrorKind::kInternal, "", "an unknown dtype");
}

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> parts;
  for (int64_t size : shape) parts.push_back(std::to_string(size));
  return "[" + join(parts, ", ") + "]";
}

at::Tensor in_logical_order(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.nbytes());
  at::Tensor copy = at::from_blob(
      bytes->data(), tensor.sizes(), [bytes](void*) {}, tensor.options());
  return copy.copy_(tensor);
}

checkpoint::NamedArray array_like(const std::string& name, const at::Tensor& tensor) {
  checkpoint::NamedArray array;
  array.name = name;
  array.dtype = to_dtype(tensor.scalar_type());
  array.shape = tensor.sizes().vec();
  return array;
}

checkpoint::NamedArray as_array(const std::string& name, const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.device().is_cpu() && tensor.is_contiguous());
  checkpoint::NamedArray array = array_like(name, tensor);
  array.bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
  return array;
}

checkpoint::Destination destination_in(const std::string& name, const checkpoint::ArrayInfo& array,
                                       const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.device().is_cpu());
  if (array.dtype != to_dtype(tensor.scalar_type()) || at::IntArrayRef(array.shape) != tensor.sizes()) {
    throw Error(ErrorKind::kData, name,
                str("the checkpoint holds ", checkpoint::dtype_name(array.dtype), " ", shape_text(array.shape),
                    ", the recipe's model has ", checkpoint::dtype_name(to_dtype(tensor.scalar_type())), " ",
                    shape_text(tensor.sizes())));
  }
  if (tensor.is_contiguous()) return {{static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()}};
  auto bytes = std::make_shared<std::unique_ptr<std::byte[]>>(new std::byte[tensor.nbytes()]);
  return {{bytes->get(), tensor.nbytes()}, [bytes, tensor] {
            tensor.copy_(at::from_blob(bytes->get(), tensor.sizes(), tensor.options()));
            bytes->reset();
          }};
}

}  // namespace skytrain::tensor
