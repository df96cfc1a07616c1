// skytrain/cli/verb.h
//
// A verb of the command line: its name, its help, and what adds its flags. A new verb is one new file and one line in
// verbs().

#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <map>
#include <vector>

namespace skytrain::cli {

// Does the verb's work once the command line has been read, and returns the exit code.
using Action = std::function<int()>;
// By verb. A verb with verbs below it (`data verify`) has an action for each of those instead.
using Actions = std::map<const CLI::App*, Action>;

struct Verb {
  const char* name;
  const char* summary;  // one line, for `skytrain --help`
  const char* example;  // a command line
  void (*add)(CLI::App& app, Actions& actions);
};

void add_train(CLI::App& app, Actions& actions);
void add_eval(CLI::App& app, Actions& actions);
void add_export(CLI::App& app, Actions& actions);
void add_report(CLI::App& app, Actions& actions);
void add_data(CLI::App& app, Actions& actions);
void add_checkpoint(CLI::App& app, Actions& actions);
void add_recipe(CLI::App& app, Actions& actions);
void add_env(CLI::App& app, Actions& actions);
void add_completion(CLI::App& app, Actions& actions);
void add_help(CLI::App& app, Actions& actions);

// Flags that every verb has, and its example.
void add_help_flag(CLI::App& app, const char* example);

const std::vector<Verb>& verbs();

}  // namespace skytrain::cli
