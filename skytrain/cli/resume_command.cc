#include "skytrain/base/text.h"
#include "skytrain/cli/train.h"

namespace skytrain::cli {

std::string shell_quoted(const std::string& argument) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string out = "'";
  for (const char c : argument) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string resume_command(const std::string& program, const TrainFlags& flags) {
  std::vector<std::string> words = {program, "train", flags.recipe};
  for (const std::string& set : flags.sets) words.insert(words.end(), {"--set", set});
  if (flags.runs != TrainFlags().runs) words.insert(words.end(), {"--runs", flags.runs});
  // After `never`, the newest run of this recipe, which `auto` finds, is the one that was interrupted.
  if (flags.resume != "never" && flags.resume != "auto") words.insert(words.end(), {"--resume", flags.resume});
  if (flags.log_every > 0) words.insert(words.end(), {"--log-every", std::to_string(flags.log_every)});
  if (flags.json) words.push_back("--json");
  if (flags.quiet) words.push_back("--quiet");
  for (std::string& word : words) word = shell_quoted(word);
  return join(words, " ");
}

}  // namespace skytrain::cli
