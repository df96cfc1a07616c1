// skytrain/weights/torchscript.h
#pragma once
#include <vector>

#include "skytrain/weights/zip_reader.h"

namespace skytrain::weights {

// Whether an archive with these members is TorchScript: code, and the constants that it uses.
bool names_torchscript(const std::vector<ZipMember>& members);

}  // namespace skytrain::weights
