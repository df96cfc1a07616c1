#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "skytrain/base/json.h"
#include "skytrain/cli/command_line_test_data.h"

namespace skytrain::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Printed topology(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"env", "topology"});
  return run_captured(flags);
}

class TopologyFile : public ::testing::Test {
 protected:
  void SetUp() override { path_ = ::testing::TempDir() + "skytrain-topology." + std::to_string(::getpid()); }
  void TearDown() override { ::unlink(path_.c_str()); }
  const std::string& with(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  std::string path_;
};

TEST(EnvTopology, ShowsThisMachineAndBindsItsRanks) {
  const Printed p = topology({"--ranks", "1"});
  EXPECT_EQ(p.code, 0);
  EXPECT_THAT(p.out, StartsWith("this machine: "));
  EXPECT_THAT(p.out, HasSubstr("\nbinding\n  rank  GPU "));
  const Json json = parse_json(topology({"--json"}).out, "stdout");
  EXPECT_FALSE(json["cores"].empty());
  EXPECT_GE(json["binding"]["ranks"].size(), 1);
  EXPECT_TRUE(json.contains("interface"));
}

TEST_F(TopologyFile, OfAnotherMachineIsReadFromALog) {
  const std::string log =
      with("GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity\nGPU0 X NV4 PIX 0-3 0\nGPU1 NV4 X SYS 4-7 1\n");
  const Json json = parse_json(topology({"--from-nvidia-smi", log, "--json", "--ranks", "2"}).out, "stdout");
  EXPECT_EQ(json["links"][0][1], "NV4");
  EXPECT_EQ(json["binding"]["ranks"][1]["cpus"], "4-7");
  EXPECT_FALSE(json.contains("interface")) << "that is of this machine";
  const Printed p = topology({"--from-nvidia-smi", log, "--synthetic", "pack:2 [numa] core:2 pu:2"});
  EXPECT_EQ(p.code, 0);
  EXPECT_THAT(p.out, HasSubstr("socket 1"));
  EXPECT_THAT(p.out, HasSubstr("  1     GPU1  1     2      4-7   NIC0\n"));
}

TEST_F(TopologyFile, WhatCanNotBeReadIsOneClearLine) {
  const std::string text = with("hello\n");
  EXPECT_EQ(topology({"--from-nvidia-smi", text}).code, 4);
  EXPECT_THAT(topology({"--from-nvidia-smi", text}).err, HasSubstr(": has no table of nvidia-smi topo -m\n"));
  EXPECT_EQ(topology({"--xml", text}).code, 4);
  EXPECT_EQ(topology({"--xml", "/nonexistent/machine.xml"}).code, 2);
  EXPECT_EQ(topology({"--xml", "."}).code, 2);
  EXPECT_EQ(topology({"--synthetic", "pack:two"}).code, 2);
  EXPECT_EQ(topology({"--synthetic", "core:2 pu:1", "--xml", text}).code, 2);
  EXPECT_EQ(topology({"--synthetic", "core:2 pu:1", "--interface", "eth0"}).code, 2);
  EXPECT_EQ(topology({"--ranks", "0"}).code, 2);
  EXPECT_EQ(topology({"--interface", "skytrain-none"}).code, 2);
  EXPECT_EQ(parse_json(topology({"--synthetic", "?", "--json"}).out, "")["error"]["exit_code"], 2);
}

TEST(EnvTopology, IsOfferedBelowEnv) {
  EXPECT_THAT(run_captured({"env", "--help"}).out, HasSubstr("topology"));
  EXPECT_THAT(topology({"--help"}).out, HasSubstr("Example:\n  skytrain env topology --ranks 8"));
  EXPECT_THAT(run_captured({"env", "topolgy"}).err, HasSubstr("did you mean \"topology\""));
}

}  // namespace
}  // namespace skytrain::cli
