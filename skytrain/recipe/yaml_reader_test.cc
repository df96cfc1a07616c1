// What is wrong with a file as a whole: every case gives one clear line with its place.

#include <gmock/gmock.h>

#include <random>

#include "skytrain/base/text.h"
#include "skytrain/recipe/test_recipes.h"
#include "skytrain/recipe/value.h"

namespace skytrain::recipe {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(YamlFile, PositionsCountFrom1) {
  const Sources sources{"recipe.yaml", ".", {}};
  const Value root = read_yaml("a: 1\nb: {c: [x, 'y']}\n", Place{Place::Source::kFile, 0, 1, 1}, sources);
  EXPECT_EQ(sources.describe(root.find("a")->place), "recipe.yaml:1:4");
  EXPECT_EQ(sources.describe(root.find("b")->find("c")->items[1].place), "recipe.yaml:2:12");
  EXPECT_FALSE(root.find("b")->find("c")->items[0].quoted);
  EXPECT_TRUE(root.find("b")->find("c")->items[1].quoted);
}

TEST(YamlFile, EmptyIsRefused) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "~", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(refusal(text), "recipe.yaml: is empty\n  a recipe starts with `version: 1`; see docs/recipe.md") << text;
  }
}

TEST(YamlFile, MustBeAMapping) {
  EXPECT_THAT(refusal("- a\n- b\n"), StartsWith("recipe.yaml:1:1: is a list, expected a mapping of keys\n"));
  EXPECT_THAT(refusal("just text\n"), StartsWith("recipe.yaml:1:1: is \"just text\", expected a mapping of keys\n"));
}

TEST(YamlFile, DuplicateKeysAreRefusedWithBothLines) {
  EXPECT_EQ(refusal(std::string(kSmall) + "name: other\n"),
            "recipe.yaml:12:1: key \"name\" appears twice, first in line 2\n  remove one of them");
  EXPECT_EQ(refusal(small_but("lr: 0.05", "lr: 0.05, 'lr': 1")),
            "recipe.yaml:11:36: key \"lr\" appears twice, first in line 11\n  remove one of them");
}

TEST(YamlFile, TabsInTheIndentationAreNamed) {
  EXPECT_EQ(refusal(small_but("  batch", "\tbatch")),
            "recipe.yaml:10:1: a tab in the indentation\n  indent with spaces");
  EXPECT_EQ(refusal(small_but("  batch", "  \tbatch")),
            "recipe.yaml:10:3: a tab in the indentation\n  indent with spaces");
  EXPECT_NO_THROW(resolve(small_but("batch: 8", "batch: 8\t# samples\n\t\n  \t# a comment")));
}

TEST(YamlFile, SecondDocumentIsRefused) {
  EXPECT_EQ(refusal(std::string(kSmall) + "---\nversion: 1\n"),
            "recipe.yaml:12:1: a second document starts here\n  one file holds one recipe");
}

TEST(YamlFile, ByteOrderMarkAndWindowsLineEndsAreFine) {
  EXPECT_EQ(resolve("\xEF\xBB\xBF" + std::string(kSmall)).recipe, resolve(kSmall).recipe);
  std::string windows;
  for (const char* c = kSmall; *c != '\0'; ++c) windows += *c == '\n' ? std::string("\r\n") : std::string(1, *c);
  const Resolved resolved = resolve(windows);
  EXPECT_EQ(resolved.recipe, resolve(kSmall).recipe);
  EXPECT_EQ(resolved.origins.at("train.batch").place, "recipe.yaml:10:10");
}

TEST(YamlFile, OtherEncodingsAreNamed) {
  EXPECT_EQ(refusal(small_but("name: case", "name: caf\xe9")),
            "recipe.yaml:2:10: not UTF-8 text\n  save the recipe in UTF-8");
  EXPECT_EQ(refusal(std::string("\xFF\xFEv\0e\0", 6)), "recipe.yaml:1:1: UTF-16 text\n  save the recipe in UTF-8");
  EXPECT_THAT(refusal(std::string("version: 1\n\0\0", 13)), StartsWith("recipe.yaml:2:1: a control character (0x00)"));
  EXPECT_THAT(refusal("version: 1\nname: \x1b[2J\n"), StartsWith("recipe.yaml:2:7: a control character (0x1B)"));
}

TEST(YamlFile, SyntaxErrorsNameTheirPlace) {
  for (const char* broken :
       {"version: 1\nmodel: {name: simplecnn\n", "version: 1\n  name: x\n", "version: 1\nname: a: b\n",
        "version: 1\nname: @x\n", "version: 1\nlist: [1, 2\n", "version: 1\nname: *none\n",
        "%YAML 9.9\n---\nversion: 1\n", "version: 1\nname: \"\\q\"\n"}) {
    const std::string message = refusal(broken);
    EXPECT_THAT(message, StartsWith("recipe.yaml:")) << broken;
    EXPECT_THAT(message, HasSubstr("not valid YAML: ")) << broken;
    EXPECT_THAT(message, Not(HasSubstr("yaml-cpp"))) << broken;
  }
}

// The parser underneath takes the end of the file for the closing quote.
TEST(YamlFile, AnOpenQuoteIsRefusedWhereItOpens) {
  for (const char* text :
       {"version: 1\nname: 'open\n", "version: 1\nname: \"open\nmodel: x\n", "version: 1\nname: 'open"}) {
    const std::string message = refusal(text);
    EXPECT_THAT(message, StartsWith("recipe.yaml:")) << message;
    EXPECT_THAT(message, testing::AnyOf(HasSubstr(":2:7: the quote that opens here is not closed"),
                                        HasSubstr("not valid YAML")));
  }
  EXPECT_EQ(set_refusal("name='open"), "--set name='open: the quote that opens here is not closed");
}

TEST(YamlFile, KeysAreNames) {
  EXPECT_THAT(refusal("? [a, b]\n: 1\n"), HasSubstr("recipe.yaml:1:3: a key is a list, expected a name"));
  EXPECT_THAT(refusal("{a: 1}: 2\n"), HasSubstr("a key is a mapping, expected a name"));
  EXPECT_THAT(refusal("~: 2\n"), HasSubstr("a key is nothing, expected a name"));
}

TEST(YamlFile, TagsAreRefused) {
  EXPECT_EQ(refusal(small_but("lr: 0.05", "lr: !!float 0.05")),
            "recipe.yaml:11:30: tag \"tag:yaml.org,2002:float\" has no meaning in a recipe\n  remove it");
  EXPECT_THAT(refusal(small_but("name: case", "name: !!python/object/apply:os.system [id]")),
              HasSubstr("has no meaning in a recipe"));
}

TEST(YamlFile, AliasesStandForWhatTheyName) {
  std::string text = small_but("train: {path", "train: &d {path");
  text.replace(text.find("{path: mnist, format: idx, split: test}"), 39, "*d");
  EXPECT_EQ(resolve(text).recipe.data.eval->split, "train");
}

TEST(YamlFile, AliasCyclesAndBombsAreRefused) {
  EXPECT_THAT(refusal("a: &a [*a]\n"), StartsWith("recipe.yaml:1:8: this alias is part of what it stands for"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += str("a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) bomb += str(j > 0 ? ", " : "", "*a", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("more than 10000 values or 4.0 MiB, with aliases written out"));
  std::string fat = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 5000; ++i) fat += "*a, ";
  EXPECT_THAT(refusal(fat + "]\n"), HasSubstr("more than 10000 values or 4.0 MiB"));
}

TEST(YamlFile, DeepNestingIsRefused) {
  EXPECT_THAT(refusal("a: " + std::string(40, '[') + std::string(40, ']') + "\n"),
              HasSubstr("nested deeper than 32 levels"));
  EXPECT_THAT(refusal("a: " + std::string(200'000, '[')), StartsWith("recipe.yaml:1:"));
  EXPECT_THAT(refusal("a: " + std::string(200'000, '{')), StartsWith("recipe.yaml:1:"));
}

// Whatever is in the file, the outcome is a recipe or one Error: no crash, no other exception, no hang.
TEST(YamlFile, RandomDamageGivesARecipeOrAnError) {
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ": ",
                                "- ",
                                "\n",
                                "  ",
                                "\"",
                                "'",
                                "&a ",
                                "*a",
                                "|\n",
                                ">",
                                "#",
                                "? ",
                                "!!x ",
                                "---\n",
                                "...",
                                "%",
                                "\t",
                                "\r",
                                "~",
                                "1e9",
                                "@",
                                "`",
                                ",",
                                "\\",
                                std::string("\0", 1),
                                "\xff",
                                "<<: *a",
                                "\xEF\xBB\xBF",
                                "epochs",
                                "null"};
  std::minstd_rand random(1);
  size_t accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = kSmall;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      const std::string& piece = pieces[random() % std::size(pieces)];
      switch (random() % 3) {
        case 0:
          text.insert(at, piece);
          break;
        case 1:
          text.replace(at, random() % 20, piece);
          break;
        default:
          text.erase(at, random() % 40);
      }
      if (text.empty()) text = "x";
    }
    try {
      const Resolved resolved = resolve(text);
      EXPECT_EQ(resolve(explain(resolved)).recipe, resolved.recipe) << text;
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe) << text;
      EXPECT_THAT(error.message(), StartsWith("recipe.yaml")) << text;
    }
  }
  EXPECT_GT(accepted, 30u) << "some damage is harmless";
}

}  // namespace
}  // namespace skytrain::recipe
