#include <string_view>

#include "skytrain/base/stop_signal.h"
#include "skytrain/cli/command_line.h"
#include "skytrain/cli/output.h"
#include "skytrain/launch/rank_shim.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == skytrain::launch::kShimVerb) {
    return skytrain::launch::run_shim({argv + 2, argv + argc});
  }
  skytrain::cli::open_standard_descriptors();
  skytrain::StopSignal::install();
  return skytrain::cli::run({argv + 1, argv + argc});
}
