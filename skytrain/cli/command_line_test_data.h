// skytrain/cli/command_line_test_data.h
//
// For tests: a command line that is run in this process, and what it printed.

#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "skytrain/cli/command_line.h"

namespace skytrain::cli {

struct Printed {
  int code = 0;
  std::string out, err;
};

inline Printed run_captured(const std::vector<std::string>& arguments) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Printed printed;
  printed.code = run(arguments);
  printed.out = ::testing::internal::GetCapturedStdout();
  printed.err = ::testing::internal::GetCapturedStderr();
  return printed;
}

}  // namespace skytrain::cli
