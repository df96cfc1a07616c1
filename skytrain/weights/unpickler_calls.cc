// What the names that a pickle may refer to do. Sources: torch/_utils.py (the _rebuild functions),
// torch/serialization.py (persistent ids), torch/_tensor.py (__setstate__) of PyTorch 0.1 to 2.11; Lib/collections
// of Python 2.7 and 3.

#include "skytrain/weights/unpickler.h"

namespace skytrain::weights {

using Role = PickleGlobal::Role;
using Kind = PickleKind;

PickleRef Unpickler::reduce(PickleRef callable, PickleRef arguments) {
  if (!values_.is(callable, Kind::kGlobal)) fail(str("a call of ", kind_words(values_.kind(callable))));
  const PickleGlobal& global = values_.global(callable);
  const auto bad_arguments = [&] {
    fail(str("a call of ", global.module, ".", global.name, " with arguments that do not fit it,"));
  };
  if (!values_.is(arguments, Kind::kTuple)) bad_arguments();
  const uint32_t count = values_.count(arguments);
  switch (global.role) {
    case Role::kOrderedDict:
      return ordered_dict(arguments);
    case Role::kSize:
      if (count != 1 || !values_.is(values_.child(arguments, 0), Kind::kTuple)) bad_arguments();
      return values_.child(arguments, 0);
    case Role::kRebuildTensor:
    case Role::kRebuildTensorV2:
    case Role::kRebuildTensorV3:
      return tensor(arguments, global.role);
    case Role::kRebuildParameter:
    case Role::kParameter: {
      if (count == 0 || !values_.is(values_.child(arguments, 0), Kind::kTensor)) bad_arguments();
      if (global.role == Role::kRebuildParameter) return values_.child(arguments, 0);
      const PickleRef data = values_.child(arguments, 0);
      const PickleRef parameter = container(Kind::kTensor, true);
      if (values_.count(data) > 0) append(parameter, values_.child(data, 0));
      return parameter;
    }
    case Role::kOther:
      return PickleValues::kOther;
    case Role::kStorage:
    case Role::kUntypedStorage:
    case Role::kDtype:
    case Role::kUnsupported:
      break;
  }
  fail(str("a call of ", global.module, ".", global.name));
}

PickleRef Unpickler::new_object(PickleRef type, PickleRef arguments) {
  if (values_.is(type, Kind::kGlobal) && values_.is(arguments, Kind::kTuple) && values_.count(arguments) == 0) {
    const Role role = values_.global(type).role;
    if (role == Role::kParameter) return container(Kind::kTensor, true);
    if (role == Role::kOrderedDict) return container(Kind::kDict, true);
  }
  fail(str("a new object of ", kind_words(values_.kind(type))));
}

void Unpickler::build(PickleRef object, PickleRef state) {
  if (values_.is(object, Kind::kDict) && values_.flag(object)) {
    // Attributes of an OrderedDict: the versions of a state dict's modules.
    if (!values_.is(state, Kind::kDict))
      fail(str("an OrderedDict with ", kind_words(values_.kind(state)), " as state"));
    return;
  }
  if (values_.is(object, Kind::kTensor) && values_.flag(object)) {
    // (requires_grad, volatile, hooks), or in the oldest files (data, gradient, hooks, requires_grad, volatile).
    if (values_.is(state, Kind::kTuple)) {
      if (values_.count(state) == 3) return;
      if (values_.count(state) == 5) {
        const PickleRef data = values_.child(state, 0);
        if (values_.is(data, Kind::kTensor) && values_.count(data) > 0) {
          charge(PickleValues::kCellBytes);
          values_.replace_first_child(object, values_.child(data, 0));
          return;
        }
      }
    }
    fail("a Parameter with a state that does not fit it");
  }
  fail(str("a state for ", kind_words(values_.kind(object))));
}

// ("storage", type, key, location, elements) and, in the form before 1.6, a view: None or (key, offset, elements).
PickleRef Unpickler::persistent(PickleRef id) {
  const auto bad = [&](const char* what) { fail(str("a persistent id ", what)); };
  if (!values_.is(id, Kind::kTuple)) bad("that is no tuple");
  const uint32_t count = values_.count(id);
  if (count == 0 || !values_.is(values_.child(id, 0), Kind::kString)) bad("that does not begin with a word");
  if (values_.text(values_.child(id, 0)) != "storage") bad("of something that is no storage");
  if (count != 5 && count != 6) bad("of a storage that has not 5 or 6 parts");
  const PickleRef type = values_.child(id, 1);
  if (!values_.is(type, Kind::kGlobal) ||
      (values_.global(type).role != Role::kStorage && values_.global(type).role != Role::kUntypedStorage)) {
    bad("whose type is no storage");
  }
  if (!values_.is(values_.child(id, 2), Kind::kString)) bad("whose key is no string");
  if (!values_.is(values_.child(id, 3), Kind::kString)) bad("whose device is no string");
  const PickleRef elements = values_.child(id, 4);
  if (!values_.is(elements, Kind::kInt)) bad("whose size is no number");
  if (values_.integer(elements) < 0) bad("whose size is negative");
  if (count == 6 && !values_.is(values_.child(id, 5), Kind::kNone)) {
    const PickleRef view = values_.child(id, 5);
    if (!values_.is(view, Kind::kTuple) || values_.count(view) != 3 ||
        !values_.is(values_.child(view, 1), Kind::kInt) || !values_.is(values_.child(view, 2), Kind::kInt)) {
      bad("whose view is none");
    }
  }
  const PickleRef storage = container(Kind::kStorage);
  append(storage, id);
  return storage;
}

// OrderedDict(), or as Python 2 wrote it: OrderedDict([[key, value], …]).
PickleRef Unpickler::ordered_dict(PickleRef arguments) {
  const PickleRef dict = container(Kind::kDict, true);
  if (values_.count(arguments) == 0) return dict;
  const PickleRef items = values_.child(arguments, 0);
  const auto bad_arguments = [&] { fail("an OrderedDict of something that is no list of pairs"); };
  if (values_.count(arguments) != 1 || !values_.is(items, Kind::kList)) bad_arguments();
  for (const PickleRef pair : values_.children(items)) {
    if (!(values_.is(pair, Kind::kList) || values_.is(pair, Kind::kTuple)) || values_.count(pair) != 2) bad_arguments();
    append(dict, values_.child(pair, 0));
    append(dict, values_.child(pair, 1));
  }
  return dict;
}

// The numbers are looked at when the tensor is read, which not every tensor is.
PickleRef Unpickler::tensor(PickleRef arguments, Role role) {
  const auto bad = [&](const char* what) { fail(str("a tensor ", what)); };
  const uint32_t count = values_.count(arguments);
  const uint32_t least = role == Role::kRebuildTensor ? 4 : role == Role::kRebuildTensorV2 ? 6 : 7;
  if (count < least || count > (role == Role::kRebuildTensor ? least : least + 1)) bad("with another number of parts");
  const PickleRef storage = values_.child(arguments, 0);
  if (!values_.is(storage, Kind::kStorage)) bad("whose storage is none");
  if (!values_.is(values_.child(arguments, 1), Kind::kInt)) bad("whose offset is no number");
  if (!values_.is(values_.child(arguments, 2), Kind::kTuple)) bad("whose size is no tuple");
  if (!values_.is(values_.child(arguments, 3), Kind::kTuple)) bad("whose stride is no tuple");
  if (role == Role::kRebuildTensorV3) {
    const PickleRef dtype = values_.child(arguments, 6);
    if (!values_.is(dtype, Kind::kGlobal) || values_.global(dtype).role != Role::kDtype) bad("whose dtype is none");
    refuse_(str("holds a tensor of dtype torch.", values_.global(dtype).name, ", which is not read"),
            "in Python, convert it: tensor.to(torch.float32)");
  }
  const PickleRef type = values_.child(values_.child(storage, 0), 1);
  if (values_.global(type).role == Role::kUntypedStorage) bad("without a dtype");
  if (count > least) {
    const PickleRef metadata = values_.child(arguments, least);
    const bool none =
        values_.is(metadata, Kind::kNone) || (values_.is(metadata, Kind::kDict) && values_.count(metadata) == 0);
    if (!none) refuse_("holds a tensor that is a conjugate or negated view, which is not read");
  }
  const PickleRef made = container(Kind::kTensor);
  append(made, arguments);
  return made;
}

}  // namespace skytrain::weights
