#include "skytrain/cli/command_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "skytrain/base/json.h"
#include "skytrain/cli/command_line_test_data.h"
#include "skytrain/cli/output.h"

namespace skytrain::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Printed skytrain(const std::vector<std::string>& arguments) { return run_captured(arguments); }

TEST(CommandLine, AnUnknownVerbIsAnsweredWithTheClosest) {
  const Printed p = skytrain({"trian", "recipe.yaml"});
  EXPECT_EQ(p.code, 2);
  EXPECT_THAT(p.err, StartsWith("skytrain: there is no verb \"trian\" (did you mean \"train\"?)\n"));
  EXPECT_EQ(p.out, "");
}

// `trian recipe.yaml --json` was answered with "there is no flag --json".
TEST(CommandLine, AnUnknownVerbIsNamedBeforeTheFlagsMeantForIt) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"trian", "recipe.yaml", "--json"}, {"trian", "--set", "a=1", "recipe.yaml"}}) {
    const Printed p = skytrain(arguments);
    EXPECT_EQ(p.code, 2);
    EXPECT_THAT(p.err, StartsWith("skytrain: there is no verb \"trian\" (did you mean \"train\"?)\n"));
  }
  EXPECT_THAT(skytrain({"data", "verfy", "data/mnist", "--json"}).err, HasSubstr("there is no verb \"verfy\""));
}

TEST(CommandLine, AVerbBelowAVerbIsAnsweredWithTheClosest) {
  EXPECT_THAT(skytrain({"data", "verfy"}).err,
              HasSubstr("data: there is no verb \"verfy\" (did you mean \"verify\"?)"));
}

// A launcher took its program's flags for its own.
TEST(CommandLine, AForeignProgramsWordsAreItsOwn) {
  const CommandLine line;
  using Words = std::vector<std::string>;
  const auto command = [&](const Words& words) { return split_command_line(line, words).command; };
  const Words program = {"python3", "x.py", "-h", "--nproc", "9", "--", "--json", ""};
  for (Words words :
       {Words{"run"}, {"run", "--nproc", "2"}, {"run", "--json", "--nproc=2"}, {"run", "--grace", "-5s"}}) {
    Words marked = words;
    marked.emplace_back("--");
    marked.insert(marked.end(), program.begin(), program.end());
    EXPECT_EQ(command(marked), program);
    const Words ours = words;
    words.insert(words.end(), program.begin(), program.end());
    EXPECT_EQ(command(words), program);
    EXPECT_EQ(split_command_line(line, words).ours, ours);
  }
  EXPECT_TRUE(command({"run"}).empty());
  EXPECT_TRUE(command({"run", "--nproc"}).empty());
  EXPECT_TRUE(command({"run", "--"}).empty());
  EXPECT_EQ(command({"run", "--", "--"}), Words{"--"});
  EXPECT_TRUE(command({"train", "--", "x"}).empty());
  EXPECT_TRUE(command({}).empty());
}

TEST(CommandLine, WhatIsToBeRunMayNotBeMissing) {
  EXPECT_THAT(skytrain({"run", "--nproc", "2"}).err, StartsWith("skytrain: run: CMD is missing\n"));
  EXPECT_THAT(skytrain({"run", "--nprocs", "2", "--", "true"}).err, HasSubstr("did you mean \"--nproc\""));
  EXPECT_THAT(skytrain({"run", "--grace", "30", "--", "true"}).err, HasSubstr("--grace"));
  EXPECT_EQ(skytrain({"run", "--grace", "3 steps", "--", "true"}).code, 2);
  EXPECT_EQ(skytrain({"run", "--", "/no/such/program"}).code, 5);
}

TEST(CommandLine, AnUnknownFlagIsAnsweredWithTheClosest) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"train", "--dryrun", "recipe.yaml"},
                                                    {"train", "recipe.yaml", "--dryrun=1"},
                                                    {"train", "--dryrun"}}) {
    const Printed p = skytrain(arguments);
    EXPECT_EQ(p.code, 2);
    EXPECT_THAT(p.err, StartsWith("skytrain: train: there is no flag --dryrun (did you mean \"--dry-run\"?)\n"));
  }
}

// A flag was taken for the abbreviation of another one.
TEST(CommandLine, FlagsAreNotAbbreviated) {
  EXPECT_EQ(skytrain({"train", "recipe.yaml", "--exp"}).code, 2);
  EXPECT_EQ(skytrain({"env", "--js"}).code, 2);
}

TEST(CommandLine, WhatIsMissingOrTooMuchIsNamed) {
  EXPECT_THAT(skytrain({}).err, StartsWith("skytrain: a verb is missing\n"));
  EXPECT_THAT(skytrain({"train"}).err, StartsWith("skytrain: train: RECIPE is missing\n"));
  EXPECT_THAT(skytrain({"train", "a.yaml", "b.yaml"}).err,
              StartsWith("skytrain: train: unexpected argument \"b.yaml\"\n"));
  EXPECT_THAT(skytrain({"train", "a.yaml", "--set"}).err, HasSubstr("--set"));
  EXPECT_EQ(skytrain({"train", "a.yaml", "--set"}).code, 2);
}

TEST(CommandLine, ANumberThatIsNoneIsRefused) {
  for (const char* number : {"0", "-3", "1.5", "1e3", "", "x", "99999999999999999999999"}) {
    const Printed p = skytrain({"train", "a.yaml", std::string("--log-every=") + number});
    EXPECT_EQ(p.code, 2) << number;
    EXPECT_THAT(p.err, HasSubstr("--log-every")) << number;
  }
}

// One `--set` swallowed the recipe that came after it.
TEST(CommandLine, SetTakesOneValue) {
  const Printed p = skytrain({"train", "--set", "a=1", "--set", "b=2", "/nonexistent/recipe.yaml"});
  EXPECT_THAT(p.err, HasSubstr("/nonexistent/recipe.yaml"));
}

TEST(CommandLine, FailuresAreJsonToo) {
  const Printed p = skytrain({"train", "/nonexistent/recipe.yaml", "--json"});
  const Json json = parse_json(p.out, "stdout");
  EXPECT_EQ(json["status"], "failed");
  EXPECT_EQ(json["error"]["exit_code"], p.code);
  EXPECT_THAT(json["error"]["where"].get<std::string>(), HasSubstr("/nonexistent/recipe.yaml"));
  EXPECT_THAT(p.err, StartsWith("skytrain: "));
  EXPECT_EQ(parse_json(skytrain({"trian", "--json"}).out, "")["error"]["kind"], "usage");
}

TEST(CommandLine, EachVerbHasHelpWithAnExample) {
  for (const Verb& verb : verbs()) {
    const Printed p = skytrain({verb.name, "--help"});
    EXPECT_EQ(p.code, 0);
    EXPECT_THAT(p.out, HasSubstr(std::string("Usage: skytrain ") + verb.name));
    EXPECT_THAT(p.out, HasSubstr("Example:\n  "));
    EXPECT_EQ(skytrain({"help", verb.name}).out, p.out);
    EXPECT_THAT(skytrain({"--help"}).out, HasSubstr(verb.summary));
  }
  EXPECT_THAT(skytrain({"help", "data", "verify"}).out, HasSubstr("Usage: skytrain data verify"));
  EXPECT_THAT(skytrain({"help", "trian"}).err, HasSubstr("did you mean \"train\""));
}

TEST(CommandLine, VersionNamesTheCommit) {
  const Printed p = skytrain({"--version"});
  EXPECT_EQ(p.code, 0);
  EXPECT_THAT(p.out, ::testing::MatchesRegex("skytrain [0-9.]+ \\(commit [0-9a-z]+\\+?\\)\n"));
}

TEST(CommandLine, ReferenceAndEnvironmentGoToStdout) {
  EXPECT_THAT(skytrain({"recipe"}).out, HasSubstr("train.optimizer.lr"));
  EXPECT_THAT(skytrain({"env"}).out, HasSubstr("worker"));
  const Json env = parse_json(skytrain({"env", "--json"}).out, "stdout");
  EXPECT_TRUE(env["machine"]["cpu_features"].is_array());
  EXPECT_TRUE(env["worker"]["found"].is_boolean());
}

TEST(Report, OfWhatIsNoRunIsRefused) {
  const Printed p = skytrain({"report", "skytrain"});
  EXPECT_EQ(p.code, 2);
  EXPECT_THAT(p.err, StartsWith("skytrain: skytrain: is no run directory: it has no run.json\n"));
}

// Runs `body` in a child, whose exit code is what `body` returns.
template <class Body>
int in_child(Body&& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TEST(Output, AReaderWhoHasGoneIsNoError) {
  EXPECT_EQ(in_child([] {
              ::signal(SIGPIPE, SIG_IGN);
              int fds[2];
              if (::pipe(fds) != 0) return 99;
              ::close(fds[0]);
              ::dup2(fds[1], STDOUT_FILENO);
              return run({"recipe"});
            }),
            0);
}

TEST(Output, AFullDiskIsAnError) {
  EXPECT_EQ(in_child([] {
              const int full = ::open("/dev/full", O_WRONLY);
              ::dup2(full, STDOUT_FILENO);
              ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
              return run({"recipe"});
            }),
            5);
}

// With stdout closed, the next file opened got its number, and the result was written into that file.
TEST(Output, AClosedStdoutIsNotGivenToAFile) {
  EXPECT_EQ(in_child([] {
              ::close(STDIN_FILENO);
              ::close(STDOUT_FILENO);
              open_standard_descriptors();
              return ::open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1;
            }),
            0);
}

TEST(Completion, KnowsEachVerbAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Printed p = skytrain({"completion", shell});
    EXPECT_EQ(p.code, 0);
    for (const char* word : {"train", "verify", "env", "dry-run", "resume", "quiet"}) {
      EXPECT_THAT(p.out, HasSubstr(word)) << shell;
    }
  }
  EXPECT_THAT(skytrain({"completion", "bsh"}).err, HasSubstr("did you mean \"bash\""));
}

// What bash offers after `words`, the last of which is being typed.
std::string bash_offers(const std::string& words) {
  const std::string script = ::testing::TempDir() + "skytrain-completion." + std::to_string(::getpid());
  ::testing::internal::CaptureStdout();
  run({"completion", "bash"});
  const std::string completion = ::testing::internal::GetCapturedStdout();
  FILE* file = std::fopen(script.c_str(), "w");
  std::fputs((completion + "\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_skytrain\n" +
              "printf '%s ' \"${COMPREPLY[@]}\"\n")
                 .c_str(),
             file);
  std::fclose(file);
  FILE* pipe = ::popen(("bash --norc " + script).c_str(), "r");
  char buffer[4096];
  const size_t n = std::fread(buffer, 1, sizeof buffer, pipe);
  ::pclose(pipe);
  ::unlink(script.c_str());
  return std::string(buffer, n);
}

TEST(Completion, BashOffersWhatFits) {
  EXPECT_EQ(bash_offers("skytrain tr"), "train ");
  EXPECT_EQ(bash_offers("skytrain data v"), "verify ");
  EXPECT_EQ(bash_offers("skytrain checkpoint ver"), "verify ");
  EXPECT_EQ(bash_offers("skytrain env t"), "topology ");
  EXPECT_EQ(bash_offers("skytrain env --j"), "--json ");
  EXPECT_EQ(bash_offers("skytrain env topology --ra"), "--ranks ");
  EXPECT_EQ(bash_offers("skytrain env topology --xml CMakeL"), "CMakeLists.txt ");
  EXPECT_EQ(bash_offers("skytrain train x.yaml --re"), "--resume ");
  EXPECT_EQ(bash_offers("skytrain train --resume n"), "never ");
  EXPECT_EQ(bash_offers("skytrain data verify --fo"), "--format ");
  EXPECT_EQ(bash_offers("skytrain completion z"), "zsh ");
  EXPECT_EQ(bash_offers("skytrain train CMakeL"), "CMakeLists.txt ");
}

}  // namespace
}  // namespace skytrain::cli
