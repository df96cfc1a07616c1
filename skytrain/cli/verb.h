// skytrain/cli/verb.h
//
// A verb of the command line: its name, its help, and what adds its flags. A new verb is one new file and one line in
// verbs().

#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace skytrain::cli {

// Does the verb's work once the command line has been read, and returns the exit code.
using Action = std::function<int()>;
// By verb. A verb with verbs below it (`data verify`) has an action for each of those instead.
class Actions {
 public:
  Action& operator[](const CLI::App* verb) { return actions_[verb]; }
  const Action& at(const CLI::App* verb) const { return actions_.at(verb); }

  // The verb runs a foreign program: the words after its flags are that program's, and are put into `command`.
  void takes_command(const CLI::App* verb, std::vector<std::string>* command) { commands_[verb] = command; }
  std::vector<std::string>* command_of(const CLI::App* verb) const {  // nullptr: it is none of those
    const auto found = commands_.find(verb);
    return found == commands_.end() ? nullptr : found->second;
  }

 private:
  std::map<const CLI::App*, Action> actions_;
  std::map<const CLI::App*, std::vector<std::string>*> commands_;
};

struct Verb {
  const char* name;
  const char* summary;  // one line, for `skytrain --help`
  const char* example;  // a command line
  void (*add)(CLI::App& app, Actions& actions);
};

void add_train(CLI::App& app, Actions& actions);
void add_run(CLI::App& app, Actions& actions);
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
