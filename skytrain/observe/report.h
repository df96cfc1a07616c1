// skytrain/observe/report.h
//
// report.html: one page that tells a run, made of the records in its directory and nothing else. It asks the network
// for nothing, runs no script but its own two (Content-Security-Policy by hash), and says the same without scripts and
// on paper. Made again from the same records it is the same, byte for byte.

#pragma once
#include <string>

#include "skytrain/base/file_system.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::observe {

// Any record may be missing or damaged: the page is made of the others and says what is missing. Throws only when the
// run's folder is not there (Error kUsage).
std::string render_report(const FileSystem& fs, const record::RunDirectory& run);

// Replaces run.report() atomically.
void write_report(FileSystem& fs, const record::RunDirectory& run);

}  // namespace skytrain::observe
