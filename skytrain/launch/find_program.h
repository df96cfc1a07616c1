// skytrain/launch/find_program.h

#pragma once
#include <string>

namespace skytrain::launch {

// The path of the program that a shell would run for `name`: itself when it has a slash, else the first one in $PATH.
// Throws Error(kEnvironment) when there is none, or when it can't be run.
std::string find_program(const std::string& name);

}  // namespace skytrain::launch
