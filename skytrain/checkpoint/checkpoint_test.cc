#include "skytrain/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"
#include "skytrain/checkpoint/manifest.h"

namespace skytrain::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kDirectory[] = "/run/checkpoints";
constexpr char kTensors[] = "rank-0-of-1.safetensors";

template <class F>
std::string refusal(F&& action, ErrorKind kind = ErrorKind::kData) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

TEST(Checkpoint, NamesSortByStep) {
  EXPECT_EQ(checkpoint_name(1234), "step-00001234");
  EXPECT_EQ(checkpoint_name(0), "step-00000000");
  EXPECT_EQ(checkpoint_name(123456789), "step-123456789");
  EXPECT_EQ(step_from_name("step-00001234"), 1234u);
  EXPECT_EQ(step_from_name("step-123456789"), 123456789u);
  EXPECT_EQ(step_from_name("step-00000000"), 0u);
  for (const char* name :
       {"step-", "step-1a", "step--1", "step-1.tmp", "handpicked", "Step-1", "step-18446744073709551616"}) {
    EXPECT_EQ(step_from_name(name), std::nullopt) << name;
  }
}

TEST(Checkpoint, ComesBackBitForBit) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 12);
  EXPECT_EQ(path, "/run/checkpoints/step-00000012");
  EXPECT_TRUE(holds(fs, path, 12));
  const Manifest manifest = read_manifest(fs, path);
  EXPECT_EQ(manifest.version, kFormatVersion);
  EXPECT_EQ(manifest.generation, 1u);
  EXPECT_EQ(manifest.world, 2);
  EXPECT_EQ(manifest.created_unix_seconds, 1.7e9);
  EXPECT_EQ(manifest.state, (Json{{"lr", 0.125}, {"epoch", 1}}));
  EXPECT_EQ(fs.list(kDirectory), std::vector<std::string>{"step-00000012"});
}

TEST(Checkpoint, LargeNumbersAndDoublesOfTheStateSurvive) {
  MemoryFileSystem fs;
  Manifest manifest = TestState(1).manifest();
  manifest.samples = ~uint64_t{0};
  manifest.state = {{"third", 1.0 / 3}, {"tiny", 5e-324}, {"seed", ~uint64_t{0}}, {"text", "caf\u00e9 \"\n"}};
  const std::string path = commit(fs, kDirectory, manifest, {});
  EXPECT_EQ(read_manifest(fs, path).state, manifest.state);
  EXPECT_EQ(read_manifest(fs, path).samples, manifest.samples);
}

TEST(Checkpoint, StateThatJsonCannotHoldIsRefusedBeforeItIsWritten) {
  MemoryFileSystem fs;
  Manifest manifest = TestState(1).manifest();
  manifest.created_unix_seconds = NAN;  // JSON has no such number
  refusal([&] { commit(fs, kDirectory, manifest, {}); }, ErrorKind::kInternal);
  manifest = TestState(1).manifest();
  manifest.state = {{"name", "caf\xe9"}};
  refusal([&] { commit(fs, kDirectory, manifest, {}); }, ErrorKind::kInternal);
  manifest.state = Json::array({1});
  refusal([&] { commit(fs, kDirectory, manifest, {}); }, ErrorKind::kInternal);
  EXPECT_TRUE(list_checkpoints(fs, kDirectory, true).empty());
}

TEST(Checkpoint, MissingTensorIsNamed) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 1);
  const LoadedFile file = load_file(fs, path, read_manifest(fs, path).files[0]);
  EXPECT_THAT(refusal([&] { file.bytes("fc.weigth"); }),
              AllOf(HasSubstr(kTensors), HasSubstr("has no tensor \"fc.weigth\" (did you mean \"fc.weight\"?)")));
}

// An evaluation that was made after its checkpoint belongs to the checkpoint.
TEST(AmendState, ReplacesTheStateAndNothingElse) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 12);
  amend_state(fs, path, {{"best", 12}});
  EXPECT_TRUE(holds(fs, path, 12));
  const Manifest manifest = read_manifest(fs, path);
  EXPECT_EQ(manifest.state, (Json{{"best", 12}}));
  EXPECT_EQ(manifest.created_unix_seconds, 1.7e9);
  const auto found = find_newest_valid(fs, kDirectory, nullptr);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, path);
  fs.crash();
  EXPECT_EQ(read_manifest(fs, path).state, (Json{{"best", 12}})) << "a power cut does not take it back";
}

TEST(AmendState, LeavesTheOldStateOrTheNewOne) {
  bool failed = true;
  int fail_at = 0;
  for (; failed; ++fail_at) {
    MemoryFileSystem fs;
    const std::string path = save(fs, kDirectory, 12);
    const Json before = read_manifest(fs, path).state, after = {{"best", 12}};
    int calls = 0;
    failed = false;
    fs.set_fault([&](std::string_view, const std::string&) {
      if (calls++ != fail_at) return 0;
      failed = true;
      return ENOSPC;
    });
    try {
      amend_state(fs, path, after);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    }
    fs.set_fault(nullptr);
    fs.crash();
    EXPECT_TRUE(holds(fs, path, 12)) << fail_at;
    const Json found = read_manifest(fs, path).state;
    EXPECT_TRUE(found == after || (failed && found == before)) << fail_at << ": " << found;
  }
  EXPECT_GE(fail_at, 4) << "the loop went through all calls";
}

TEST(Commit, OfAStepThatIsThereChangesNothing) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 5);
  int writes = 0;
  fs.set_fault([&](std::string_view call, const std::string&) {
    writes += call == "append" || call == "rename" || call == "remove_tree" || call == "open";
    return 0;
  });
  EXPECT_EQ(save(fs, kDirectory, 5), path);
  EXPECT_EQ(writes, 0);
}

TEST(Commit, ReplacesADamagedCheckpointOfTheStep) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 5);
  overwrite(fs, path + "/" + kTensors, "x");
  EXPECT_EQ(save(fs, kDirectory, 5), path);
  EXPECT_TRUE(holds(fs, path, 5));
}

TEST(Commit, DoesNotReplaceWhatMayBeWorthSomething) {
  MemoryFileSystem fs;
  save(fs, kDirectory, 5);
  fs.rename("/run/checkpoints/step-00000005", "/run/checkpoints/step-00000006");
  EXPECT_THAT(refusal([&] { save(fs, kDirectory, 6); }), HasSubstr("it is a good one of step 5"));
  overwrite(fs, "/run/checkpoints/step-00000006/manifest.json", R"({"format": "skytrain-checkpoint", "version": 2})");
  EXPECT_THAT(refusal([&] { save(fs, kDirectory, 6); }), HasSubstr("format version 2"));
  EXPECT_TRUE(fs.exists("/run/checkpoints/step-00000006/manifest.json"));
}

TEST(Commit, SweepsTheTmpOfAnEarlierAttempt) {
  MemoryFileSystem fs;
  fs.make_directories("/run/checkpoints/step-00000005.tmp");
  overwrite(fs, "/run/checkpoints/step-00000005.tmp/rank-0-of-1.safetensors", "half");
  EXPECT_TRUE(holds(fs, save(fs, kDirectory, 5), 5));
  EXPECT_EQ(fs.list(kDirectory), std::vector<std::string>{"step-00000005"});
}

TEST(Commit, FullDiskIsSaidAndLeavesNothing) {
  bool full = true;
  for (uint64_t room = 0; full; room += 50) {
    MemoryFileSystem fs;
    const std::string first = save(fs, kDirectory, 1);
    const uint64_t used = fs.read_file(first + "/manifest.json").size() + fs.read_file(first + "/" + kTensors).size();
    full = room < used;  // both are of one size
    fs.set_capacity(used + room);
    if (!full) {
      EXPECT_TRUE(holds(fs, save(fs, kDirectory, 2), 2));
      break;
    }
    EXPECT_THAT(refusal([&] { save(fs, kDirectory, 2); }, ErrorKind::kEnvironment), HasSubstr("No space left"));
    EXPECT_EQ(fs.list(kDirectory), std::vector<std::string>{"step-00000001"}) << room;
  }
}

// What a restart finds. The previous checkpoint may never be lost, the new one may only be found whole.
void expect_old_or_new(MemoryFileSystem& fs, bool committed) {
  const auto found = find_newest_valid(fs, kDirectory, nullptr);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->step == 1 || found->step == 2);
  if (committed) {
    EXPECT_EQ(found->step, 2u);
  }
  EXPECT_TRUE(holds(fs, found->path, found->step));
  if (found->step == 2) {
    EXPECT_TRUE(holds(fs, "/run/checkpoints/step-00000001", 1));
  }
}

enum class Aftermath { kNothing, kCrash, kCrashKeepingNames };

void aftermath(MemoryFileSystem& fs, Aftermath what) {
  fs.set_fault(nullptr);
  if (what == Aftermath::kCrash) fs.crash();
  if (what == Aftermath::kCrashKeepingNames) fs.crash_keeping_names();
}

constexpr Aftermath kAftermaths[] = {Aftermath::kNothing, Aftermath::kCrash, Aftermath::kCrashKeepingNames};

// A checkpoint that was being written when the disk filled up replaced the good one.
TEST(Commit, SurvivesAFailureOfAnyCall) {
  for (const int errnum : {ENOSPC, EIO}) {
    for (const Aftermath after : kAftermaths) {
      int calls = 0;
      bool failed = true;
      for (int fail_at = 0; failed; ++fail_at) {
        SCOPED_TRACE(testing::Message() << "call " << fail_at << " fails with " << errnum);
        MemoryFileSystem fs;
        save(fs, kDirectory, 1);
        calls = 0;
        failed = false;
        fs.set_fault([&](std::string_view, const std::string&) {
          if (calls++ != fail_at) return 0;
          failed = true;
          return errnum;
        });
        bool committed = false;
        try {
          save(fs, kDirectory, 2);
          committed = true;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
        }
        aftermath(fs, after);
        expect_old_or_new(fs, committed);
        if (!committed && after == Aftermath::kNothing) {
          EXPECT_FALSE(fs.exists("/run/checkpoints/step-00000002.tmp"));
        }
        EXPECT_TRUE(holds(fs, save(fs, kDirectory, 2), 2));  // and the next attempt works
      }
      EXPECT_GE(calls, 10);  // the loop went through all of them
    }
  }
}

struct Killed {};

TEST(Commit, SurvivesDeathBeforeAnyCall) {
  for (const Aftermath after : kAftermaths) {
    bool died = true;
    for (int die_at = 0; died; ++die_at) {
      SCOPED_TRACE(testing::Message() << "dead before call " << die_at);
      MemoryFileSystem fs;
      save(fs, kDirectory, 1);
      int calls = 0;
      died = false;
      fs.set_fault([&](std::string_view, const std::string&) -> int {
        if (calls++ < die_at) return 0;
        died = true;
        throw Killed();  // and so for every later call: nobody tidies up
      });
      try {
        save(fs, kDirectory, 2);
      } catch (const Killed&) {
      }
      aftermath(fs, after);
      expect_old_or_new(fs, /*committed=*/!died);
      EXPECT_TRUE(holds(fs, save(fs, kDirectory, 2), 2));
      fs.crash();
      expect_old_or_new(fs, true);
    }
  }
}

TEST(Commit, FirstCheckpointOutlivesAPowerCutWithItsFolders) {
  MemoryFileSystem fs;
  save(fs, "/a/b/c", 1);
  fs.crash();
  EXPECT_TRUE(holds(fs, "/a/b/c/step-00000001", 1));
}

TEST(Commit, DeathWhileReplacingADamagedOneLosesNothingElse) {
  bool died = true;
  for (int die_at = 0; died; ++die_at) {
    MemoryFileSystem fs;
    save(fs, kDirectory, 1);
    overwrite(fs, save(fs, kDirectory, 2) + "/manifest.json", "{");
    int calls = 0;
    died = false;
    fs.set_fault([&](std::string_view, const std::string&) -> int {
      if (calls++ < die_at) return 0;
      died = true;
      throw Killed();
    });
    try {
      save(fs, kDirectory, 2);
    } catch (const Killed&) {
    }
    aftermath(fs, Aftermath::kCrash);
    expect_old_or_new(fs, !died);
  }
}

TEST(Manifest, EveryTruncationAndEveryFlippedBitIsFound) {
  const std::string text = format_manifest([] {
    Manifest manifest = TestState(3).manifest();
    manifest.files = {{kTensors, 90, std::string(32, 'a')}};
    return manifest;
  }());
  ASSERT_EQ(parse_manifest(text, "m").step, 3u);
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(parse_manifest(text.substr(0, size), "m"), Error) << size << " bytes";
  }
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THROW(parse_manifest(flipped, "m"), Error) << "bit " << bit;
  }
  EXPECT_THROW(parse_manifest(text + "\n", "m"), Error);
}

TEST(Manifest, IsJsonThatOtherProgramsRead) {
  MemoryFileSystem fs;
  const std::string text = fs.read_file(save(fs, kDirectory, 3) + "/manifest.json");
  const Json json = parse_json(text, "manifest.json");
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["files"][0]["name"], kTensors);
  EXPECT_EQ(json["manifest_xxh128"].get<std::string>().size(), 32u);
}

TEST(TensorFile, EveryTruncationAndEveryFlippedBitIsFound) {
  MemoryFileSystem fs;
  const std::string path = save(fs, kDirectory, 3), file = path + "/" + kTensors;
  const Manifest manifest = read_manifest(fs, path);
  const std::string content = fs.read_file(file);
  for (size_t size = 0; size < content.size(); ++size) {
    overwrite(fs, file, content.substr(0, size));
    ASSERT_FALSE(find_newest_valid(fs, kDirectory, nullptr)) << size << " bytes";
    ASSERT_THROW(load_file(fs, path, manifest.files[0]), Error);
  }
  for (size_t bit = 0; bit < content.size() * 8; ++bit) {
    std::string flipped = content;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    overwrite(fs, file, flipped);
    ASSERT_FALSE(find_newest_valid(fs, kDirectory, nullptr)) << "bit " << bit;
    ASSERT_THROW(load_file(fs, path, manifest.files[0]), Error);
  }
  overwrite(fs, file, content);
  EXPECT_TRUE(find_newest_valid(fs, kDirectory, nullptr));
}

TEST(Manifest, LaterVersionIsRefusedNamingBoth) {
  EXPECT_THAT(
      refusal([] { parse_manifest(R"({"format": "skytrain-checkpoint", "version": 7, "new": {}})", "m.json"); }),
      AllOf(HasSubstr("m.json: has checkpoint format version 7"), HasSubstr("reads versions up to 1")));
}

// With a right hash, so that only the content is to blame.
std::string sealed(Json json) {
  json.erase("manifest_xxh128");
  std::string text = json.dump(2);
  text.resize(text.size() - 2);
  return text + ",\n  \"manifest_xxh128\": \"" + xxh128_hex(text) + "\"\n}\n";
}

// A manifest comes from elsewhere: the files it names may not lead out of its folder.
TEST(Manifest, FileNamesThatLeadElsewhereAreRefused) {
  MemoryFileSystem fs;
  const Json good = parse_json(fs.read_file(save(fs, kDirectory, 3) + "/manifest.json"), "m");
  ASSERT_EQ(parse_manifest(sealed(good), "m").step, 3u);
  for (const std::string name :
       {"../step-00000001/rank-0-of-1.safetensors", "/etc/passwd", "rank-0-of-1.safetensors/..",
        "./rank-0-of-1.safetensors", "rank-0-of-1.safetensors\n", "rank-00-of-1.safetensors", "rank-1-of-1.safetensors",
        "rank-+0-of-1.safetensors", "rank-0-of-2.safetensors", "rank-0-of-1.safetensors.tmp", "rank--of-.safetensors",
        "", "..", "manifest.json", "rank-.safetensors", "rank-0-of-1", ".safetensors"}) {
    Json bad = good;
    bad["files"][0]["name"] = name;
    EXPECT_THAT(refusal([&] { parse_manifest(sealed(bad), "m.json"); }), HasSubstr("m.json: names ")) << name;
    EXPECT_THROW(format_manifest([&] {
                   Manifest manifest = TestState(3).manifest();
                   manifest.files = {{name, 90, std::string(32, 'a')}};
                   return manifest;
                 }()),
                 Error);
  }
}

TEST(Manifest, EachRankMustBeThereOnce) {
  MemoryFileSystem fs;
  Json json = parse_json(fs.read_file(save(fs, kDirectory, 3) + "/manifest.json"), "m");
  const auto with_files = [&](const std::vector<std::string>& names) {
    const Json file = json["files"][0];
    Json files = Json::array();
    for (const std::string& name : names) {
      files.push_back(file);
      files.back()["name"] = name;
    }
    Json copy = json;
    copy["files"] = files;
    return sealed(copy);
  };
  EXPECT_EQ(parse_manifest(with_files({"rank-1-of-2.safetensors", "rank-0-of-2.safetensors"}), "m").files.size(), 2u);
  EXPECT_THAT(refusal([&] { parse_manifest(with_files({}), "m"); }), HasSubstr("names no files"));
  EXPECT_THAT(refusal([&] {
                parse_manifest(with_files({"rank-0-of-2.safetensors", "rank-0-of-2.safetensors"}), "m");
              }),
              HasSubstr("twice"));
  EXPECT_THAT(refusal([&] { parse_manifest(with_files({"rank-0-of-2.safetensors"}), "m"); }),
              HasSubstr("names 1 files"));
}

TEST(Manifest, EveryMemberIsNeededAndTyped) {
  MemoryFileSystem fs;
  const Json good = parse_json(fs.read_file(save(fs, kDirectory, 3) + "/manifest.json"), "m");
  for (const char* key :
       {"format", "version", "generation", "step", "samples", "world", "created_unix_seconds", "state", "files"}) {
    Json bad = good;
    bad.erase(key);
    EXPECT_THAT(refusal([&] { parse_manifest(sealed(bad), "m"); }), HasSubstr(std::string("has no ") + key));
    bad[key] = nullptr;
    EXPECT_THAT(refusal([&] { parse_manifest(sealed(bad), "m"); }),
                HasSubstr(key[0] == 'f' && key[1] == 'o' ? "format" : key));
  }
  for (const char* key : {"name", "bytes", "xxh128"}) {
    Json bad = good;
    bad["files"][0].erase(key);
    EXPECT_THAT(refusal([&] { parse_manifest(sealed(bad), "m"); }), HasSubstr(std::string("has no files[0].") + key));
  }
  Json extended = good;
  extended["later_addition"] = {1, 2};  // an addition that old readers may ignore does not raise the version
  EXPECT_EQ(parse_manifest(sealed(extended), "m").step, 3u);
}

TEST(Manifest, MissingOneIsToldFromAMissingCheckpoint) {
  MemoryFileSystem fs;
  EXPECT_THAT(refusal([&] { read_manifest(fs, "/none"); }), HasSubstr("/none: no such checkpoint"));
  fs.make_directories("/half");
  EXPECT_THAT(refusal([&] { read_manifest(fs, "/half"); }), HasSubstr("/half/manifest.json: is missing"));
}

}  // namespace
}  // namespace skytrain::checkpoint
