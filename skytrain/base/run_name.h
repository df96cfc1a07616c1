// skytrain/base/run_name.h
//
// Which names a run may have. The name is a folder below the folder of runs, so that it must neither lead out of it nor
// hide in it, nor be taken for a flag. Any thread may call.

#pragma once
#include <string>

namespace skytrain {

inline constexpr const char* kRunNameRule = "letters, digits and . _ - + =, up to 100, not beginning with . or -";

// Why `name` can't name a run ("is empty", …), or "" when it can.
std::string refuse_run_name(const std::string& name);

}  // namespace skytrain
