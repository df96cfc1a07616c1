#include "skytrain/proto/messages.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::proto {
namespace {

// One of each, no field at its default value.
std::vector<Message> one_of_each() {
  return {
      Hello{7, "0.1.0", "2.11.0"},
      Start{{{"seed", 3}}, "/runs/a", true, 10},
      Evaluate{{{"name", "a"}}, "/runs/a/checkpoints/step-00000003"},
      Trace{{{"name", "a"}}, "", "/tmp/model.pt"},
      Started{1, 64, 938, 60000, 60000, 216650, 2, 32, "bf16", {{"train.slot", "64 samples on 2 devices"}}, {{"a", 1}}},
      ProgressReport{5, 320, 0.5, 0.25, 1e-3, 15000.5, 1764510607.125, true},
      Note{"warning", "one file skipped"},
      CheckpointDone{938, 60032, "/runs/a/checkpoints/step-00000938", 0.02},
      EvaluationDone{938, 10000, 0.081, {{"top1", 0.9731}, {"f1", 0.97}}, 0.4},
      Interrupted{12, 768, "/runs/a/checkpoints/step-00000010", 10, 640, Json{{"steps", 12}}},
      Finished{{{"status", "complete"}}},
      Failed{ErrorKind::kDiverged, "step 7", "the loss is nan", "lower train.optimizer.lr"},
      Stop{27.5},
  };
}

Json through_text(const Json& json) { return Json::parse(json.dump()); }

std::string problem_of_decode(const Json& json) {
  try {
    decode(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.problem();
  }
  return "";
}

TEST(Messages, EachSurvivesTheWire) {
  const auto messages = one_of_each();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(messages[i].index(), i) << "the list above leaves a message out";
    const Json wire = through_text(encode(messages[i]));
    const Message back = decode(wire);
    EXPECT_EQ(back.index(), i) << wire;
    EXPECT_EQ(encode(back), wire) << "every field that was sent is read";
  }
}

TEST(Messages, FieldsArriveInTheirPlaces) {
  const auto started = std::get<Started>(decode(through_text(encode(one_of_each()[4]))));
  EXPECT_EQ(started.resume_step, 1u);
  EXPECT_EQ(started.resume_samples, 64u);
  EXPECT_EQ(started.total_steps, 938u);
  EXPECT_EQ(started.slot, 32);
  EXPECT_EQ(started.decisions.at(0).first, "train.slot");
  const auto failed = std::get<Failed>(decode(through_text(encode(one_of_each()[11]))));
  EXPECT_EQ(failed.kind, ErrorKind::kDiverged);
  EXPECT_EQ(failed.where, "step 7");
  EXPECT_EQ(failed.problem, "the loss is nan");
  EXPECT_EQ(failed.hint, "lower train.optimizer.lr");
}

TEST(Messages, AFieldThatIsMissingIsNamed) {
  for (const Message& message : one_of_each()) {
    const Json whole = through_text(encode(message));
    for (const auto& [key, value] : whole.items()) {
      Json lacking = whole;
      lacking.erase(key);
      EXPECT_NE(problem_of_decode(lacking).find("lacks \"" + key + "\""), std::string::npos)
          << whole << " without " << key;
    }
  }
}

TEST(Messages, AFieldOfTheWrongTypeIsNamed) {
  for (const Message& message : one_of_each()) {
    const Json whole = through_text(encode(message));
    for (const auto& [key, value] : whole.items()) {
      if (key == "type") continue;
      Json wrong = whole;
      wrong[key] = Json::array({Json::array()});
      EXPECT_NE(problem_of_decode(wrong).find("\"" + key + "\" is not "), std::string::npos) << wrong;
    }
  }
}

TEST(Messages, CountsAreNotNegativeAndFitTheirType) {
  Json progress = encode(ProgressReport{});
  progress["step"] = -1;
  EXPECT_EQ(problem_of_decode(progress), "message \"progress\": \"step\" is not an integer of 0 or more");
  progress["step"] = 1.5;
  EXPECT_EQ(problem_of_decode(progress), "message \"progress\": \"step\" is not an integer");
  Json hello = encode(Hello{});
  hello["protocol"] = 1ll << 40;
  EXPECT_EQ(problem_of_decode(hello), "message \"hello\": \"protocol\" is not a small integer");
  Json started = encode(Started{});
  started["parameters"] = ~0ull;
  EXPECT_EQ(problem_of_decode(started), "message \"started\": \"parameters\" is not an integer of 64 bits");
}

TEST(Messages, ALossThatIsNoNumberArrivesAsSuch) {
  for (const double loss : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    ProgressReport report;
    report.loss = loss;
    const auto back = std::get<ProgressReport>(decode(through_text(encode(report))));
    EXPECT_EQ(std::isnan(back.loss), std::isnan(loss));
    if (!std::isnan(loss)) {
      EXPECT_EQ(back.loss, loss);
    }
  }
}

TEST(Messages, AStopMayHaveNoEnd) {
  EXPECT_EQ(std::get<Stop>(decode(through_text(encode(Stop{})))).seconds, std::nullopt);
  EXPECT_EQ(std::get<Stop>(decode(through_text(encode(Stop{27.5})))).seconds, 27.5);
}

TEST(Messages, AnUnknownTypeIsNamed) {
  EXPECT_EQ(problem_of_decode({{"type", "dance"}}), "unknown message type \"dance\"");
  EXPECT_EQ(problem_of_decode({{"type", 7}}), "a message lacks \"type\"");
  EXPECT_EQ(problem_of_decode(Json::array()), "a message is no JSON object");
}

TEST(Messages, AFieldOfALaterBuildIsPassedOver) {
  Json stop = encode(Stop{});
  stop["reason"] = "preempted";
  EXPECT_NO_THROW(decode(stop));
}

TEST(Protocol, AWorkerOfAnotherVersionIsRefusedByName) {
  EXPECT_NO_THROW(check_protocol(Hello{}));
  try {
    check_protocol(Hello{4, "0.9.0", "2.12.0"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_EQ(error.problem(), "skytrain-worker 0.9.0 speaks protocol 4, this skytrain speaks 3");
    EXPECT_NE(error.hint().find("same build"), std::string::npos);
  }
}

}  // namespace
}  // namespace skytrain::proto
