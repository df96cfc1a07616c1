#include "skytrain/cli/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skytrain::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

AttemptResult complete() {
  AttemptResult result;
  result.status = "complete";
  result.worker_summary = {{"status", "complete"},
                           {"steps", 938},
                           {"samples", 60000},
                           {"seconds", 4.1},
                           {"eval", {{"loss", 0.081}, {"top1", 0.97314}, {"samples", 10000}}},
                           {"samples_per_second", 14650.2},
                           {"train_loss", 0.05},
                           {"parameters", 216650},
                           {"devices", 2},
                           {"slot", 32},
                           {"precision", "fp32"},
                           {"peak_rss_bytes", 1},
                           {"extra", "kept"}};
  result.time_to_first_step_s = 0.62;
  result.peak_rss_bytes = 331350016;
  result.attempts = 2;
  result.run_dir = "/runs/mnist/20261130T135007Z";
  result.report = result.run_dir + "/report.html";
  result.torch_version = "2.11.0";
  return result;
}

std::vector<std::string> keys(const OrderedJson& json) {
  std::vector<std::string> out;
  for (const auto& [key, value] : json.items()) out.push_back(key);
  return out;
}

TEST(Summary, HasTheKeysOfItsDocumentationInOrder) {
  EXPECT_THAT(keys(summary_json(complete())),
              ElementsAre("status", "run_dir", "report", "steps", "samples", "seconds", "samples_per_second",
                          "time_to_first_step_s", "peak_rss_bytes", "eval", "train_loss", "parameters", "devices",
                          "slot", "precision", "torch_version", "version", "attempts", "extra"));
}

TEST(Summary, TakesTheResultFromTheWorkerAndTheRestFromHere) {
  const OrderedJson summary = summary_json(complete());
  EXPECT_EQ(summary["steps"], 938);
  EXPECT_EQ(summary["peak_rss_bytes"], 331350016) << "both programs, not the worker's alone";
  EXPECT_EQ(summary["attempts"], 2);
}

TEST(Summary, OfAFailureSaysWhatFailedAndHowFarItCame) {
  AttemptResult result = complete();
  result.status = "failed";
  result.worker_summary = Json::object();
  result.started = {{"devices", 2}, {"slot", 32}};
  result.steps = 12;
  result.time_to_first_step_s.reset();
  result.error = Error(ErrorKind::kDiverged, "step 12", "the loss is nan", "lower the learning rate");
  const OrderedJson summary = summary_json(result);
  EXPECT_EQ(summary["status"], "failed");
  EXPECT_EQ(summary["steps"], 12);
  EXPECT_EQ(summary["devices"], 2);
  EXPECT_TRUE(summary["time_to_first_step_s"].is_null());
  EXPECT_FALSE(summary.contains("eval"));
  EXPECT_EQ(summary["error"], OrderedJson({{"kind", "diverged"},
                                           {"where", "step 12"},
                                           {"what", "the loss is nan"},
                                           {"hint", "lower the learning rate"},
                                           {"exit_code", 8}}));
}

TEST(SummaryTable, IsAlignedAndInWordsForPeople) {
  EXPECT_EQ(summary_table(summary_json(complete())),
            "  run                 /runs/mnist/20261130T135007Z\n"
            "  steps               938 (60,000 samples)\n"
            "  speed               14,650 samples/s\n"
            "  time to first step  0.62 s\n"
            "  train loss          0.0500\n"
            "  eval loss           0.0810\n"
            "  top-1               97.31 %\n"
            "  peak memory         316.0 MiB\n"
            "  report              /runs/mnist/20261130T135007Z/report.html");
}

TEST(SummaryTable, LeavesOutWhatTheRunDoesNotHave) {
  AttemptResult result = complete();
  result.worker_summary.erase("eval");
  result.worker_summary["train_loss"] = nullptr;
  const std::string table = summary_table(summary_json(result));
  EXPECT_THAT(table, Not(HasSubstr("top-1")));
  EXPECT_THAT(table, Not(HasSubstr("loss")));
}

// A run stopped before its first step was told "saved step 0".
TEST(InterruptedLine, SaysWhatWasSavedAndHowToGoOn) {
  AttemptResult result;
  result.resume_command = "skytrain train a.yaml";
  EXPECT_EQ(interrupted_line(result),
            "stopped before the first step; nothing to save; resume with: skytrain train a.yaml");
  result.steps = 12;
  result.checkpoint = "/runs/a/checkpoints/step-00000012";
  result.saved_step = 12;
  EXPECT_EQ(interrupted_line(result),
            "saved step 12: no sample will be trained again; resume with: skytrain train a.yaml");
  result.saved_step = 10;
  result.samples = 96;
  result.saved_samples = 80;
  EXPECT_EQ(
      interrupted_line(result),
      "stopped after step 12; the newest checkpoint is of step 10: 16 samples will be trained again; resume with: "
      "skytrain train a.yaml");
  result.saved_step = result.saved_samples = 0;
  EXPECT_EQ(interrupted_line(result),
            "stopped after step 12; nothing was saved: 96 samples will be trained again; resume with: skytrain train "
            "a.yaml");
}

TEST(InterruptedLine, OfAWorkerThatWasNotDoneInTimeClaimsNothing) {
  AttemptResult result;
  result.status = "interrupted";
  result.resume_command = "skytrain train a.yaml";
  result.out_of_time = true;
  result.steps = result.saved_step = 10;
  result.checkpoint = "/runs/a/checkpoints/step-00000010";
  EXPECT_EQ(interrupted_line(result),
            "the worker was not done when the grace ended, and was stopped; the newest checkpoint is of step 10: what "
            "came after it will be trained again; resume with: skytrain train a.yaml");
  EXPECT_TRUE(summary_json(result)["samples_to_repeat"].is_null());
}

TEST(Summary, OfAnInterruptedRunHasTheWorkersFigures) {
  AttemptResult result;
  result.status = "interrupted";
  result.worker_summary = {{"steps", 12}, {"samples", 96}, {"seconds", 1.5}, {"train_loss", 0.7}};
  const OrderedJson summary = summary_json(result);
  EXPECT_EQ(summary["status"], "interrupted");
  EXPECT_EQ(summary["steps"], 12);
  EXPECT_EQ(summary["train_loss"], 0.7);
  EXPECT_EQ(summary["seconds"], 1.5);
}

TEST(Record, BytesThatAreNotUtf8AreReplaced) { EXPECT_EQ(record_text("caf\xe9"), "\"caf\xef\xbf\xbd\"\n"); }

TEST(Attempt, ItsEndIsAddedToTheLastOne) {
  MemoryFileSystem fs;
  fs.make_directories("/runs/a");
  const record::RunDirectory run("/runs/a");
  write_file_atomically(fs, run.run_json(), R"({"name": "a", "attempts": []})");
  record::add_attempt(fs, run, {{"started", "1"}});
  record::add_attempt(fs, run, {{"started", "2"}});
  EXPECT_EQ(finish_attempt(fs, run, {{"status", "failed"}}), 2);
  const Json json = parse_json(fs.read_file(run.run_json()), "");
  EXPECT_EQ(json["name"], "a");
  EXPECT_FALSE(json["attempts"][0].contains("status"));
  EXPECT_EQ(json["attempts"][1]["started"], "2");
  EXPECT_EQ(json["attempts"][1]["status"], "failed");
}

TEST(Attempt, ARecordWithoutAttemptsIsRefused) {
  MemoryFileSystem fs;
  fs.make_directories("/runs/a");
  const record::RunDirectory run("/runs/a");
  for (const char* text : {"{}", "[]", R"({"attempts": []})", R"({"attempts": 1})"}) {
    write_file_atomically(fs, run.run_json(), text);
    EXPECT_THROW(finish_attempt(fs, run, {}), Error) << text;
  }
}

}  // namespace
}  // namespace skytrain::cli
