#include "skytrain/cli/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "skytrain/base/text.h"
#include "skytrain/cli/output.h"
#include "skytrain_version.h"

namespace skytrain::cli {
namespace {

// "train" or "data verify": the verbs that lead to `app`.
std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  if (parent == nullptr) return "";
  const std::string above = path_of(*parent);
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

std::string help_command(const CLI::App& app) {
  const std::string path = path_of(app);
  return "see skytrain " + (path.empty() ? "" : path + " ") + "--help";
}

std::vector<std::string> long_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

// The verb that was asked for, as far as the arguments name one.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

Error no_such_verb(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = verb_names(app);
  const std::string path = path_of(app);
  return Error(ErrorKind::kUsage, path,
               str("there is no verb \"", printable(word, 60), "\"", did_you_mean(word, names)),
               "verbs: " + join(names, ", ") + "; " + help_command(app));
}

Error unexpected(const CLI::App& app, const std::string& word) {
  if (word.size() > 1 && word[0] == '-') {
    const std::string flag = word.substr(0, word.find('='));
    std::string hint = help_command(app);
    if (path_of(app) == "train") hint = "values of the recipe are given as --set key=value; " + hint;
    return Error(ErrorKind::kUsage, path_of(app),
                 str("there is no flag ", printable(flag, 60), did_you_mean(flag, long_flags(app))), hint);
  }
  if (!verb_names(app).empty()) return no_such_verb(app, word);
  return Error(ErrorKind::kUsage, path_of(app), str("unexpected argument \"", printable(word, 60), "\""),
               help_command(app));
}

std::vector<std::string> words_left_over(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  for (const CLI::App* verb : app.get_subcommands()) {
    const std::vector<std::string> more = words_left_over(*verb);
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

// What CLI11 refused, in our words where it matters.
Error usage_error(const CommandLine& command_line, const CLI::ParseError& error) {
  const CLI::App& app = innermost(command_line.app);
  const auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  // Before "RECIPE is missing": the word that was not understood may have been meant for it.
  if (is(CLI::ExitCodes::ExtrasError) || is(CLI::ExitCodes::RequiredError)) {
    const std::vector<std::string> rest = words_left_over(command_line.app);
    // Where a verb belongs, the first word is meant as one, whatever flags that verb would take.
    if (!rest.empty() && rest.front().rfind("-", 0) != 0 && !verb_names(app).empty()) {
      return no_such_verb(app, rest.front());
    }
    const auto flag = std::find_if(rest.begin(), rest.end(), [](const auto& word) { return word.rfind("-", 0) == 0; });
    if (flag != rest.end()) return unexpected(app, *flag);
    if (!rest.empty()) return unexpected(app, rest.front());
  }
  if (is(CLI::ExitCodes::RequiredError) && !verb_names(app).empty()) {
    return Error(ErrorKind::kUsage, path_of(app), "a verb is missing",
                 "verbs: " + join(verb_names(app), ", ") + "; " + help_command(app));
  }
  std::string what = error.what();
  if (is(CLI::ExitCodes::RequiredError)) what = what.substr(0, what.find(" is required")) + " is missing";
  return Error(ErrorKind::kUsage, path_of(app), what, help_command(app));
}

bool wants_json(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

int parse_and_run(CommandLine& command_line, const SplitCommandLine& words) {
  CLI::App& app = command_line.app;
  try {
    app.parse(std::vector<std::string>(words.ours.rbegin(), words.ours.rend()));
  } catch (const CLI::CallForHelp&) {
    print_result(full_help(innermost(app)));
    return 0;
  } catch (const CLI::CallForVersion&) {
    print_result(version_line());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw usage_error(command_line, error);
  }
  const CLI::App* const verb = &innermost(app);
  if (std::vector<std::string>* const command = command_line.actions.command_of(verb)) *command = words.command;
  return command_line.actions.at(verb)();
}

// Whether a flag takes the next word as its value.
bool takes_value(const CLI::App& app, const std::string& flag) {
  if (flag.find('=') != std::string::npos) return false;
  const CLI::Option* const option = app.get_option_no_throw(flag);
  return option != nullptr && option->get_items_expected_max() > 0;
}

}  // namespace

CommandLine::CommandLine() : app("Trains deep-learning models from one recipe file.", "skytrain") {
  app.set_version_flag("--version", version_line(), "Print version and commit");
  app.set_help_flag("-h,--help", "Print this help");
  app.require_subcommand(1);
  app.footer("Example:\n  skytrain train recipe.yaml\n\n`skytrain help VERB` tells more of a verb.");
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    add_help_flag(*sub, verb.example);
    verb.add(*sub, actions);
  }
}

void add_help_flag(CLI::App& app, const char* example) {
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(std::string("Example:\n  ") + example);
}

std::string full_help(const CLI::App& app) {
  std::string above;
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent()) {
    above = parent->get_name() + (above.empty() ? "" : " ") + above;
  }
  return app.help(above);
}

std::string version_line() { return "skytrain " SKYTRAIN_VERSION " (commit " SKYTRAIN_COMMIT ")"; }

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"train", "Train a model as a recipe says", "skytrain train recipe.yaml --set train.batch=128", add_train},
      {"run", "Run any program as torchrun does, with notices, restarts and committed checkpoints",
       "skytrain run --nproc 2 -- python3 train.py --epochs 90", add_run},
      {"eval", "Evaluate a trained model on data.eval", "skytrain eval runs/mnist/20261130T135007Z --json", add_eval},
      {"export", "Write a trained model for other programs", "skytrain export runs/mnist/20261130T135007Z -o mnist.pt",
       add_export},
      {"report", "Make a run's report.html again", "skytrain report runs/mnist/20261130T135007Z", add_report},
      {"data", "Look into data sets", "skytrain data verify data/mnist", add_data},
      {"checkpoint", "List, verify, compare, copy and remove checkpoints",
       "skytrain checkpoint verify runs/mnist/20261130T135007Z", add_checkpoint},
      {"recipe", "Print every key of a recipe with type, default and meaning", "skytrain recipe", add_recipe},
      {"env", "Show what this machine offers and what is missing", "skytrain env --json", add_env},
      {"completion", "Print a completion script for a shell", "source <(skytrain completion bash)", add_completion},
      {"help", "Tell more of a verb", "skytrain help train", add_help},
  };
  return all;
}

SplitCommandLine split_command_line(const CommandLine& command_line, const std::vector<std::string>& arguments) {
  const CLI::App* verb = nullptr;
  for (const CLI::App* each : command_line.app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!arguments.empty() && each->check_name(arguments.front())) verb = each;
  }
  if (verb == nullptr || command_line.actions.command_of(verb) == nullptr) return {arguments, {}};
  size_t end = 1;
  while (end < arguments.size() && arguments[end].size() > 1 && arguments[end][0] == '-' && arguments[end] != "--") {
    end += takes_value(*verb, arguments[end]) ? 2 : 1;
  }
  end = std::min(end, arguments.size());
  const auto split = arguments.begin() + static_cast<std::ptrdiff_t>(end);
  const bool marked = split != arguments.end() && *split == "--";
  return {{arguments.begin(), split}, {split + (marked ? 1 : 0), arguments.end()}};
}

int run(const std::vector<std::string>& arguments) {
  SplitCommandLine words = {arguments, {}};
  try {
    CommandLine command_line;
    words = split_command_line(command_line, arguments);
    return parse_and_run(command_line, words);
  } catch (const std::exception& exception) {
    const bool json = wants_json(words.ours);
    const Error error = as_error(exception);
    try {
      return json ? report_error_json(error) : report_error(error);
    } catch (const std::exception&) {  // stdout can't be written: stderr still may
      return report_error(error);
    }
  }
}

}  // namespace skytrain::cli
