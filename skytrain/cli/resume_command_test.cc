#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "skytrain/cli/train.h"

namespace skytrain::cli {
namespace {

// What a shell makes of the command: its words, one a line.
std::string words_by_shell(const std::string& command) {
  const std::string script = "printf '%s\\n' " + command;
  FILE* pipe = ::popen(script.c_str(), "r");
  std::string out;
  std::array<char, 4096> buffer{};
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.append(buffer.data(), n);
  ::pclose(pipe);
  return out;
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  EXPECT_EQ(shell_quoted("runs/mnist_1-a.yaml"), "runs/mnist_1-a.yaml");
  EXPECT_EQ(shell_quoted("train.batch=128"), "train.batch=128");
}

TEST(ShellQuoted, ComesBackThroughAShell) {
  for (const std::string text : {"", "a b", "it's", "$HOME", "*", "~", "a\"b", "`id`", "{name: adam, lr: 1e-3}", "数据",
                                 "!x", "a\\b", "#c", "a;b", "-q", "'"}) {
    EXPECT_EQ(words_by_shell(shell_quoted(text)), text + "\n");
  }
}

TEST(ResumeCommand, OfPlainFlagsIsTheCommandItself) {
  TrainFlags flags;
  flags.recipe = "recipe.yaml";
  EXPECT_EQ(resume_command("skytrain", flags), "skytrain train recipe.yaml");
}

TEST(ResumeCommand, KeepsWhatMakesTheRunAndWhereItIs) {
  TrainFlags flags;
  flags.recipe = "my recipe.yaml";
  flags.sets = {"train.optimizer={name: adam, lr: 1e-3}", "train.batch=128"};
  flags.runs = "/data/my runs";
  flags.log_every = 5;
  flags.json = flags.quiet = true;
  EXPECT_EQ(resume_command("./bin/skytrain", flags),
            "./bin/skytrain train 'my recipe.yaml' --set 'train.optimizer={name: adam, lr: 1e-3}' "
            "--set train.batch=128 --runs '/data/my runs' --log-every 5 --json --quiet");
}

TEST(ResumeCommand, DoesNotAskForANewRunAgain) {
  TrainFlags flags;
  flags.recipe = "recipe.yaml";
  flags.resume = "never";
  EXPECT_EQ(resume_command("skytrain", flags), "skytrain train recipe.yaml");
  flags.resume = "runs/case/20261130T135007Z";
  EXPECT_EQ(resume_command("skytrain", flags), "skytrain train recipe.yaml --resume runs/case/20261130T135007Z");
}

}  // namespace
}  // namespace skytrain::cli
