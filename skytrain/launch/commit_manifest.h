// skytrain/launch/commit_manifest.h
//
// A commit's manifest as text. Pure functions.

#pragma once
#include <string>
#include <string_view>

#include "skytrain/launch/folder_commit.h"

namespace skytrain::launch {

std::string format_commit(const Commit& commit);
// Throws Error(kData, where, …): not a manifest, of a later version, or with paths that lead out of the commit.
Commit parse_commit(std::string_view text, const std::string& where);

}  // namespace skytrain::launch
