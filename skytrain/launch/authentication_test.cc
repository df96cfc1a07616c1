#include "skytrain/launch/authentication.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "skytrain/base/json.h"

namespace skytrain::launch {
namespace {

const JobKey kKey("a key of the job, long enough", "test"), kOther("another key, long enough too", "test");

// Both sides, as far as they get.
struct Handshake {
  HeadHandshake head;
  MemberHandshake member;
  std::string second, third;
  Handshake(const JobKey& heads, const JobKey& members) : head(heads), member(members) {
    second = member.answer(head.first_frame());
    third = head.answer(second);
    if (!third.empty()) member.answer(third);
  }
};

TEST(Hmac, IsThatOfRfc4231) {
  // Test case 2 of RFC 4231.
  const std::string mac = hmac_sha256("Jefe", "what do ya want for nothing?");
  const unsigned char expected[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                                    0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                                    0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
  EXPECT_EQ(mac, std::string(reinterpret_cast<const char*>(expected), sizeof expected));
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Handshake, OfTheSameKeyEndsWithSealsThatFit) {
  Handshake handshake(kKey, kKey);
  ASSERT_TRUE(handshake.member.done());
  ASSERT_FALSE(handshake.head.refusal());
  Seals head = handshake.head.seals(), member = handshake.member.seals();
  for (const char* text : {"one", "", "three"}) {
    EXPECT_EQ(member.in.open(head.out.close(text)), text);
    EXPECT_EQ(head.in.open(member.out.close(text)), text);
  }
}

TEST(Handshake, OfAnotherKeyIsRefusedByBoth) {
  Handshake handshake(kKey, kOther);
  EXPECT_FALSE(handshake.member.done());
  ASSERT_TRUE(handshake.head.refusal());
  EXPECT_EQ(handshake.head.refusal()->why, Refusal::Why::kKey);
  ASSERT_TRUE(handshake.member.refusal());
  EXPECT_EQ(handshake.member.refusal()->why, Refusal::Why::kKey);
}

TEST(Handshake, AHeadWithoutTheKeyIsRefused) {
  MemberHandshake member(kKey);
  HeadHandshake head(kOther), honest(kKey);
  member.answer(head.first_frame());
  // A proof of the right form, of another connection.
  MemberHandshake another(kKey);
  member.answer(honest.answer(another.answer(honest.first_frame())));
  EXPECT_FALSE(member.done());
  ASSERT_TRUE(member.refusal());
  EXPECT_EQ(member.refusal()->why, Refusal::Why::kKey);
}

TEST(Handshake, IsFreshEachTime) {
  HeadHandshake first(kKey), second(kKey);
  MemberHandshake member(kKey);
  const std::string proof = member.answer(first.first_frame());
  first.answer(proof);
  EXPECT_FALSE(first.refusal());
  second.answer(proof);
  ASSERT_TRUE(second.refusal()) << "a proof is good once";
  EXPECT_EQ(second.refusal()->why, Refusal::Why::kKey);
}

TEST(Handshake, AProofSentBackIsNone) {
  MemberHandshake member(kKey);
  HeadHandshake head(kKey);
  const Json proof = Json::parse(member.answer(head.first_frame()));
  member.answer(Json{{"proof", proof["proof"]}}.dump());
  EXPECT_FALSE(member.done());
}

TEST(Handshake, OfAnotherVersionIsNamedOnBothSides) {
  HeadHandshake head(kKey);
  MemberHandshake member(kKey);
  Json first = Json::parse(head.first_frame());
  first["skytrain_run"] = 7;
  const std::string reply = member.answer(first.dump());
  ASSERT_TRUE(member.refusal());
  EXPECT_EQ(member.refusal()->why, Refusal::Why::kVersion);
  EXPECT_EQ(member.refusal()->version, 7);
  EXPECT_FALSE(reply.empty());
  EXPECT_NE(head.answer(R"({"skytrain_run": 7})"), "");
  ASSERT_TRUE(head.refusal());
  EXPECT_EQ(head.refusal()->version, 7);
}

TEST(Handshake, GarbageIsRefused) {
  for (const char* frame : {"", "GET / HTTP/1.1", "[]", "{}", "{\"skytrain_run\": \"1\"}", "{\"skytrain_run\": 1}",
                            "{\"skytrain_run\": 1, \"nonce\": \"00\", \"proof\": \"00\"}",
                            "{\"skytrain_run\": 1, \"nonce\": 5, \"proof\": []}"}) {
    HeadHandshake head(kKey);
    EXPECT_EQ(head.answer(frame), "") << frame;
    ASSERT_TRUE(head.refusal()) << frame;
    EXPECT_EQ(head.refusal()->why, Refusal::Why::kGarbage) << frame;
    MemberHandshake member(kKey);
    EXPECT_EQ(member.answer(frame), "") << frame;
    ASSERT_TRUE(member.refusal()) << frame;
    EXPECT_EQ(member.refusal()->why, Refusal::Why::kGarbage) << frame;
  }
}

TEST(Seal, WhatWasChangedReplayedLeftOutOrTurnedRoundIsFound) {
  Handshake handshake(kKey, kKey);
  const auto refused = [](Seal seal, const std::string& frame) {
    try {
      seal.open(frame);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  Seals head = handshake.head.seals(), member = handshake.member.seals();
  const std::string first = head.out.close("first"), second = head.out.close("second");
  for (size_t i = 0; i < first.size(); ++i) {
    std::string changed = first;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(refused(member.in, changed)) << i;
  }
  EXPECT_TRUE(refused(member.in, second)) << "one is left out";
  EXPECT_TRUE(refused(member.in, ""));
  EXPECT_TRUE(refused(member.in, first.substr(0, 31)));
  EXPECT_TRUE(refused(head.in, first)) << "our own, sent back";
  EXPECT_EQ(member.in.open(first), "first");
  EXPECT_TRUE(refused(member.in, first)) << "a second time";
  Handshake other(kKey, kKey);
  EXPECT_TRUE(refused(other.member.seals().in, first)) << "of another connection";
}

class JobKeyFile : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/key";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
    ::unsetenv(kKeyVariable);
  }
  void write(const std::string& text, mode_t mode) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
  }
  std::string problem() {
    try {
      find_job_key(path_);
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  }
  std::string folder_ = "/tmp/skytrain-key-XXXXXX", path_;
};

TEST_F(JobKeyFile, IsReadWithoutTheSpaceAroundIt) {
  write(" 0123456789abcdef\n", 0600);
  EXPECT_EQ(find_job_key(path_)->bytes(), "0123456789abcdef");
  ::setenv(kKeyVariable, "fedcba9876543210", 1);
  EXPECT_EQ(find_job_key(path_)->bytes(), "0123456789abcdef") << "the file counts";
  EXPECT_EQ(find_job_key("")->bytes(), "fedcba9876543210");
  ::unsetenv(kKeyVariable);
  EXPECT_FALSE(find_job_key(""));
}

TEST_F(JobKeyFile, OfAnyOtherModeIsRefusedAndNothingOfItIsTold) {
  for (const mode_t mode : {0644, 0660, 0604, 0700}) {
    write("0123456789abcdef", mode);
    EXPECT_NE(problem().find("chmod 600"), std::string::npos) << mode;
    EXPECT_EQ(problem().find("0123"), std::string::npos);
  }
  write("0123456789abcde", 0600);
  EXPECT_NE(problem().find("too short"), std::string::npos);
  EXPECT_EQ(problem().find("0123"), std::string::npos);
  write(std::string(5000, 'x'), 0600);
  EXPECT_NE(problem().find("longer than 4 KiB"), std::string::npos);
  ::unlink(path_.c_str());
  EXPECT_NE(problem().find("No such file"), std::string::npos);
  path_ = folder_;
  EXPECT_NE(problem().find("no plain file"), std::string::npos);
  path_ = folder_ + "/key";
}

}  // namespace
}  // namespace skytrain::launch
