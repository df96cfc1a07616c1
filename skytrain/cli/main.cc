#include "skytrain/base/stop_signal.h"
#include "skytrain/cli/command_line.h"
#include "skytrain/cli/output.h"

int main(int argc, char** argv) {
  skytrain::cli::open_standard_descriptors();
  skytrain::StopSignal::install();
  return skytrain::cli::run({argv + 1, argv + argc});
}
