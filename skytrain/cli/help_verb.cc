#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/command_line.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"

namespace skytrain::cli {
namespace {

int print_help(const std::vector<std::string>& words) {
  CommandLine command_line;
  CLI::App* app = &command_line.app;
  for (const std::string& word : words) {
    CLI::App* found = nullptr;
    std::vector<std::string> names;
    for (CLI::App* verb : app->get_subcommands([](CLI::App*) { return true; })) {
      names.push_back(verb->get_name());
      if (names.back() == word) found = verb;
    }
    if (found == nullptr) {
      throw Error(ErrorKind::kUsage, "help",
                  str("there is no verb \"", printable(word, 60), "\"", did_you_mean(word, names)),
                  names.empty() ? "" : "verbs: " + join(names, ", "));
    }
    app = found;
  }
  print_result(full_help(*app));
  return 0;
}

}  // namespace

void add_help(CLI::App& app, Actions& actions) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("verb", *words, "Verb to tell more of, such as train, or data verify");
  actions[&app] = [words] { return print_help(*words); };
}

}  // namespace skytrain::cli
