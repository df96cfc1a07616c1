#include "skytrain/observe/recipe_origins.h"

#include <gtest/gtest.h>

#include "skytrain/observe/flatten.h"
#include "skytrain/recipe/resolve.h"

namespace skytrain::observe {
namespace {

constexpr const char* kRecipe =
    "version: 1\n"
    "name: digits\n"
    "model: {name: simplecnn, classes: 10}\n"
    "data:\n"
    "  train: {path: \"data/a  # b: c\", format: idx, split: train}\n"
    "  transforms:\n"
    "    - normalize: {mean: [0.5], std: [0.25]}\n"
    "    - pad_crop: {pad: 2}\n"
    "train:\n"
    "  epochs: 2\n"
    "  batch: 64\n"
    "  optimizer: {name: adam, lr: 1e-3}\n";

// Whatever explain() prints, this must find again: the two change together.
TEST(RecipeOrigins, OfEveryValueAreFoundAgain) {
  recipe::Resolved resolved = recipe::resolve_text(kRecipe, "r.yaml", "/home/me", {"train.batch=128"});
  resolved.recipe.train.slot = 32;
  recipe::record_auto(resolved, "train.slot", "128 samples over 4 devices");
  const auto explained = read_explained_recipe(recipe::explain(resolved));
  const auto lines = flatten(recipe::to_json(resolved.recipe));
  EXPECT_EQ(explained.size(), lines.size());
  for (const auto& [key, value] : lines) {
    ASSERT_TRUE(explained.count(key)) << key;
    EXPECT_NE(explained.at(key).origin, "") << key;
  }
  EXPECT_EQ(explained.at("train.batch").origin, "--set train.batch=128");
  EXPECT_EQ(explained.at("train.batch").value, "128");
  EXPECT_EQ(explained.at("train.slot").origin, "auto: 128 samples over 4 devices");
  EXPECT_EQ(explained.at("data.transforms[0].normalize.mean").origin, "r.yaml:7:25");
  EXPECT_EQ(explained.at("data.transforms[1].pad_crop.pad").origin, "r.yaml:8:23");
  EXPECT_EQ(explained.at("data.train.path").origin, "r.yaml:5:17");
  EXPECT_EQ(explained.at("train.clip_norm").origin, "default");
}

TEST(RecipeOrigins, OfOtherTextAreNone) {
  for (const char* text : {"", "\n\n", "- x", "- ", "a", ":", "::\n  - b:\n", "\t\xff", "a:\n- b: 1"}) {
    EXPECT_LE(read_explained_recipe(text).size(), 1u) << text;
  }
}

}  // namespace
}  // namespace skytrain::observe
