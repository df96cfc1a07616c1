// skytrain/observe/report_fixture.h
//
// Run directories for tests, written as a worker writes them: a run that ended well, and ones that did not. Made from a
// counter, so they are the same each time. The bodies are in report_fixture_test.cc, since no program needs them.

#pragma once
#include <cstdint>
#include <string>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::observe {

struct FixtureOptions {
  uint64_t steps = 1876, log_every = 10, steps_per_epoch = 938;
  size_t classes = 10;
  bool evaluated = true, summarised = true;
  std::string status = "complete";
};

// <runs>/<name>/<time>/ with every record.
record::RunDirectory write_fixture_run(FileSystem& fs, const std::string& runs, const std::string& name,
                                       const FixtureOptions& options);

// The same with markup, quotes, script ends and bytes that are not UTF-8 in every text a record can hold.
record::RunDirectory write_hostile_run(FileSystem& fs, const std::string& runs);

void put_file(FileSystem& fs, const std::string& path, const std::string& text);

}  // namespace skytrain::observe
