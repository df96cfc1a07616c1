// skytrain/weights/pickle_globals.h
//
// The names that a pickle of weights may refer to. What a name means is decided here and in unpickler_calls.cc; nothing
// is looked up anywhere else.

#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "skytrain/checkpoint/safetensors.h"

namespace skytrain::weights {

struct PickleGlobal {
  enum class Role : uint8_t {
    kStorage,         // torch.FloatStorage …: the type of a storage
    kUntypedStorage,  // its dtype comes with the tensor
    kOrderedDict,
    kSize,              // torch.Size: a tuple
    kRebuildTensor,     // (storage, offset, size, stride)
    kRebuildTensorV2,   // … and (requires_grad, hooks, metadata)
    kRebuildTensorV3,   // … and dtype: used for dtypes without a storage type of their own
    kRebuildParameter,  // (tensor, requires_grad, hooks, [state])
    kParameter,         // the class itself, in old files
    kDtype,             // torch.float32 …: a value
    kOther,             // makes a value that no weights are in: torch.device, Counter, set, bytes
    kUnsupported,       // tensors that have no array of ours
  };
  std::string_view module, name;
  Role role;
  std::optional<checkpoint::Dtype> dtype = std::nullopt;  // of kStorage
  std::string_view words = {};                            // of kUnsupported: "a quantized tensor"
};

// nullptr: not one of ours.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name);

}  // namespace skytrain::weights
