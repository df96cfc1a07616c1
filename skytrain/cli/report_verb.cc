#include <memory>

#include "skytrain/base/console.h"
#include "skytrain/base/error.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/observe/report.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::cli {
namespace {

int write_report_of(std::string path, bool json) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  FileSystem& fs = FileSystem::real();
  const record::RunDirectory run(path);
  if (!fs.exists(run.run_json())) {
    throw Error(ErrorKind::kUsage, path, "is no run directory: it has no run.json",
                "run directories are runs/<name>/<UTC time>, as `skytrain train` names them");
  }
  observe::write_report(fs, run);
  if (json) {
    print_json({{"report", run.report()}});
  } else {
    print_result(run.report());
  }
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Actions& actions) {
  struct Flags {
    std::string run;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN_DIR", flags->run, "The run's folder")->required()->type_name("FOLDER");
  app.add_flag("--json", flags->json, "Print the result as JSON");
  actions[&app] = [flags] { return write_report_of(flags->run, flags->json); };
}

}  // namespace skytrain::cli
