// skytrain/model/torchscript_file.h
//
// Whether a file is TorchScript, told by its content: people have many files that are named .pt.

#pragma once
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::model {

// Throws Error(kData) that says what the file is, and what to do about it, unless it is an archive of torch.jit.save.
// Runs nothing that is in the file.
void require_torchscript(const FileSystem& fs, const std::string& path);

}  // namespace skytrain::model
