// Completion scripts, made from the command line itself, so that they can't fall behind it.

#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/command_line.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"

namespace skytrain::cli {
namespace {

struct Entry {
  std::string name, help;
};

std::vector<Entry> verbs_of(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    entries.push_back({verb->get_name(), verb->get_description()});
  }
  return entries;
}

std::vector<Entry> flags_of(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) entries.push_back({"--" + name, option->get_description()});
    for (const std::string& name : option->get_snames()) entries.push_back({"-" + name, option->get_description()});
  }
  return entries;
}

std::string names(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& entry : entries) out += (out.empty() ? "" : " ") + entry.name;
  return out;
}

// Those whose second word is a verb too: "data", "checkpoint".
std::string verbs_with_verbs(const CLI::App& app) {
  std::string out;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verbs_of(*verb).empty()) out += (out.empty() ? "" : " ") + verb->get_name();
  }
  return out;
}

std::string single_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// The words that may follow `path` of verbs ("", "train", "data", "data verify"), for a shell's case.
template <class Emit>
void each_level(const CLI::App& app, const std::string& path, Emit&& emit) {
  emit(app, path);
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    each_level(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), emit);
  }
}

std::string bash(const CLI::App& app) {
  std::string cases;
  each_level(app, "", [&](const CLI::App& level, const std::string& path) {
    const std::string verb_words = names(verbs_of(level));
    cases += "    \"" + path + "\") flags=\"" + names(flags_of(level)) + "\"; verbs=\"" + verb_words + "\" ;;\n";
  });
  return "# source <(skytrain completion bash)\n"
         "_skytrain_reply() { mapfile -t COMPREPLY < <(compgen \"$@\"); }\n"
         "_skytrain() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" path=\"\" flags=\"\" "
         "verbs=\"\" i\n"
         "  for ((i = 1; i < COMP_CWORD && i <= 2; i++)); do\n"
         "    [[ \"${COMP_WORDS[i]}\" == -* ]] && break\n"
         "    [[ $i == 2 && \" " +
         verbs_with_verbs(app) +
         " \" != *\" $path \"* ]] && break\n"
         "    path=\"${path:+$path }${COMP_WORDS[i]}\"\n"
         "  done\n"
         "  case \"$path\" in\n" +
         cases +
         "  esac\n"
         "  COMPREPLY=()\n"
         "  case \"$before\" in\n"
         "    --runs|--log-dir|--watch|--commit-to) _skytrain_reply -d -- \"$word\"; return ;;\n"
         "    --notice-signal) _skytrain_reply -W \"TERM USR1\" -- \"$word\"; return ;;\n"
         "    --resume) _skytrain_reply -d -W \"auto never\" -- \"$word\"; return ;;\n"
         "    --format) _skytrain_reply -W \"idx\" -- \"$word\"; return ;;\n"
         "    --set|--log-every) return ;;\n"
         "  esac\n"
         "  for ((i = 2; i < COMP_CWORD; i++)); do  # what follows is another program's\n"
         "    [[ \"$path\" == run && \"${COMP_WORDS[i]}\" == -- ]] || continue\n"
         "    if ((i + 1 == COMP_CWORD)); then _skytrain_reply -c -f -- \"$word\"; else _skytrain_reply -f -- "
         "\"$word\"; fi\n"
         "    return\n"
         "  done\n"
         "  if [[ \"$word\" == -* ]]; then _skytrain_reply -W \"$flags\" -- \"$word\"; return; fi\n"
         "  if [[ -n \"$verbs\" ]]; then _skytrain_reply -W \"$verbs\" -- \"$word\"; return; fi\n"
         "  case \"$path\" in\n"
         "    completion) _skytrain_reply -W \"bash zsh fish\" -- \"$word\" ;;\n"
         "    help) _skytrain_reply -W \"" +
         names(verbs_of(app)) +
         "\" -- \"$word\" ;;\n"
         "    *) _skytrain_reply -f -- \"$word\" ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _skytrain skytrain\n";
}

// Entries for zsh's _describe: 'name:help', each quoted.
std::string described(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& entry : entries) out += (out.empty() ? "" : " ") + single_quoted(entry.name + ":" + entry.help);
  return out;
}

std::string zsh(const CLI::App& app) {
  std::string cases;
  each_level(app, "", [&](const CLI::App& level, const std::string& path) {
    cases += "    \"" + path + "\") flags=(" + described(flags_of(level)) + "); verbs=(" + described(verbs_of(level)) +
             ") ;;\n";
  });
  return "#compdef skytrain\n"
         "# skytrain completion zsh > \"${fpath[1]}/_skytrain\"\n"
         "_skytrain() {\n"
         "  local -a flags verbs\n"
         "  local seen=\"\" i\n"
         "  for ((i = 2; i < CURRENT && i <= 3; i++)); do\n"
         "    [[ \"${words[i]}\" == -* ]] && break\n"
         "    [[ $i == 3 && \" " +
         verbs_with_verbs(app) +
         " \" != *\" $seen \"* ]] && break\n"
         "    seen=\"${seen:+$seen }${words[i]}\"\n"
         "  done\n"
         "  case \"$seen\" in\n" +
         cases +
         "  esac\n"
         "  case \"${words[CURRENT-1]}\" in\n"
         "    --runs|--log-dir|--watch|--commit-to) _files -/; return ;;\n"
         "    --notice-signal) compadd TERM USR1; return ;;\n"
         "    --resume) compadd auto never; _files -/; return ;;\n"
         "    --format) compadd idx; return ;;\n"
         "    --set|--log-every) return ;;\n"
         "  esac\n"
         "  if [[ \"${words[CURRENT]}\" == -* ]]; then _describe flag flags; return; fi\n"
         "  if (( ${#verbs} )); then _describe verb verbs; return; fi\n"
         "  case \"$seen\" in\n"
         "    completion) compadd bash zsh fish ;;\n"
         "    help) compadd " +
         names(verbs_of(app)) +
         " ;;\n"
         "    *) _files ;;\n"
         "  esac\n"
         "}\n"
         "if [[ \"${funcstack[1]}\" == _skytrain ]]; then _skytrain; else compdef _skytrain skytrain; fi\n";
}

std::string fish(const CLI::App& app) {
  std::string out =
      "# skytrain completion fish > ~/.config/fish/completions/skytrain.fish\n"
      "complete -c skytrain -n __fish_use_subcommand -f\n";
  each_level(app, "", [&](const CLI::App& level, const std::string& path) {
    std::string condition = "__fish_use_subcommand";
    if (!path.empty()) {
      condition.clear();
      std::istringstream path_words(path);
      for (std::string word; path_words >> word;) {
        condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
      }
    }
    for (const Entry& verb : verbs_of(level)) {
      out += "complete -c skytrain -n " + single_quoted(condition) + " -f -a " + verb.name + " -d " +
             single_quoted(verb.help) + "\n";
    }
    for (const CLI::Option* option : level.get_options()) {
      if (option->get_lnames().empty()) continue;
      out += "complete -c skytrain -n " + single_quoted(condition);
      for (const std::string& name : option->get_lnames()) out += " -l " + name;
      for (const std::string& name : option->get_snames()) out += " -s " + name;
      if (option->get_items_expected_max() > 0) out += " -r";
      out += " -d " + single_quoted(option->get_description()) + "\n";
    }
  });
  out +=
      "complete -c skytrain -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"
      "complete -c skytrain -n '__fish_seen_subcommand_from help' -f -a '" +
      names(verbs_of(app)) + "'\n";
  return out;
}

int print_completion(const std::string& shell) {
  const CommandLine command_line;
  if (shell == "bash") {
    print_result(bash(command_line.app));
  } else if (shell == "zsh") {
    print_result(zsh(command_line.app));
  } else if (shell == "fish") {
    print_result(fish(command_line.app));
  } else {
    throw Error(
        ErrorKind::kUsage, "completion",
        str("there is no completion for \"", printable(shell, 60), "\"", did_you_mean(shell, {"bash", "zsh", "fish"})),
        "shells: bash, zsh, fish");
  }
  return 0;
}

}  // namespace

void add_completion(CLI::App& app, Actions& actions) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")->required()->type_name("");
  actions[&app] = [shell] { return print_completion(*shell); };
}

}  // namespace skytrain::cli
