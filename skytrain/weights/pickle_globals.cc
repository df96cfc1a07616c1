#include "skytrain/weights/pickle_globals.h"

namespace skytrain::weights {
namespace {

using Role = PickleGlobal::Role;
using checkpoint::Dtype;

constexpr std::string_view kTorch = "torch", kUtils = "torch._utils";
constexpr PickleGlobal kGlobals[] = {
    {kTorch, "DoubleStorage", Role::kStorage, Dtype::kF64},
    {kTorch, "FloatStorage", Role::kStorage, Dtype::kF32},
    {kTorch, "HalfStorage", Role::kStorage, Dtype::kF16},
    {kTorch, "BFloat16Storage", Role::kStorage, Dtype::kBF16},
    {kTorch, "LongStorage", Role::kStorage, Dtype::kI64},
    {kTorch, "IntStorage", Role::kStorage, Dtype::kI32},
    {kTorch, "ShortStorage", Role::kStorage, Dtype::kI16},
    {kTorch, "CharStorage", Role::kStorage, Dtype::kI8},
    {kTorch, "ByteStorage", Role::kStorage, Dtype::kU8},
    {kTorch, "BoolStorage", Role::kStorage, Dtype::kBool},
    {"torch.storage", "UntypedStorage", Role::kUntypedStorage},
    {"collections", "OrderedDict", Role::kOrderedDict},
    {kTorch, "Size", Role::kSize},
    {kUtils, "_rebuild_tensor", Role::kRebuildTensor},
    {kUtils, "_rebuild_tensor_v2", Role::kRebuildTensorV2},
    {kUtils, "_rebuild_tensor_v3", Role::kRebuildTensorV3},
    {kUtils, "_rebuild_parameter", Role::kRebuildParameter},
    {kUtils, "_rebuild_parameter_with_state", Role::kRebuildParameter},
    {"torch.nn.parameter", "Parameter", Role::kParameter},
    // Seen beside weights in checkpoints: learning rate schedules, devices, random states.
    {kTorch, "device", Role::kOther},
    {"collections", "Counter", Role::kOther},
    {"builtins", "set", Role::kOther},
    {"builtins", "bytearray", Role::kOther},
    {"builtins", "complex", Role::kOther},
    {"_codecs", "encode", Role::kOther},  // how protocol 2 says bytes
    // dtypes stand in configurations, and beside tensors whose storage has no type.
    {kTorch, "float64", Role::kDtype},
    {kTorch, "float32", Role::kDtype},
    {kTorch, "float16", Role::kDtype},
    {kTorch, "bfloat16", Role::kDtype},
    {kTorch, "int64", Role::kDtype},
    {kTorch, "int32", Role::kDtype},
    {kTorch, "int16", Role::kDtype},
    {kTorch, "int8", Role::kDtype},
    {kTorch, "uint8", Role::kDtype},
    {kTorch, "bool", Role::kDtype},
    {kTorch, "uint16", Role::kDtype},
    {kTorch, "uint32", Role::kDtype},
    {kTorch, "uint64", Role::kDtype},
    {kTorch, "complex32", Role::kDtype},
    {kTorch, "complex64", Role::kDtype},
    {kTorch, "complex128", Role::kDtype},
    {kTorch, "float8_e4m3fn", Role::kDtype},
    {kTorch, "float8_e4m3fnuz", Role::kDtype},
    {kTorch, "float8_e5m2", Role::kDtype},
    {kTorch, "float8_e5m2fnuz", Role::kDtype},
    {kTorch, "float8_e8m0fnu", Role::kDtype},
    {kTorch, "float4_e2m1fn_x2", Role::kDtype},
    {kTorch, "quint8", Role::kDtype},
    {kTorch, "qint8", Role::kDtype},
    {kTorch, "qint32", Role::kDtype},
    {kTorch, "quint4x2", Role::kDtype},
    {kTorch, "quint2x4", Role::kDtype},
    {kTorch, "ComplexFloatStorage", Role::kUnsupported, {}, "a complex tensor"},
    {kTorch, "ComplexDoubleStorage", Role::kUnsupported, {}, "a complex tensor"},
    {kTorch, "QInt8Storage", Role::kUnsupported, {}, "a quantized tensor"},
    {kTorch, "QUInt8Storage", Role::kUnsupported, {}, "a quantized tensor"},
    {kTorch, "QInt32Storage", Role::kUnsupported, {}, "a quantized tensor"},
    {kTorch, "QUInt4x2Storage", Role::kUnsupported, {}, "a quantized tensor"},
    {kTorch, "QUInt2x4Storage", Role::kUnsupported, {}, "a quantized tensor"},
    {kUtils, "_rebuild_qtensor", Role::kUnsupported, {}, "a quantized tensor"},
    {kUtils, "_rebuild_sparse_tensor", Role::kUnsupported, {}, "a sparse tensor"},
    {kUtils, "_rebuild_nested_tensor", Role::kUnsupported, {}, "a nested tensor"},
    {kUtils, "_rebuild_meta_tensor_no_storage", Role::kUnsupported, {}, "a tensor of the meta device, without data"},
    {kUtils, "_rebuild_wrapper_subclass", Role::kUnsupported, {}, "a tensor of a class of its own"},
    {"torch._tensor", "_rebuild_from_type_v2", Role::kUnsupported, {}, "a tensor of a class of its own"},
};

}  // namespace

const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name) {
  if (module == "__builtin__") module = "builtins";  // its name in Python 2, and in protocol 2 for its sake
  for (const PickleGlobal& global : kGlobals) {
    if (global.module == module && global.name == name) return &global;
  }
  return nullptr;
}

}  // namespace skytrain::weights
