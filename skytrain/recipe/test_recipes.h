// skytrain/recipe/test_recipes.h
//
// For tests only: a small valid recipe to change, and refusals as text.

#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/recipe/resolve.h"

namespace skytrain::recipe {

inline const char* const kSmall = R"(version: 1
name: case
seed: 7
model: {name: simplecnn, classes: 10}
data:
  train: {path: mnist, format: idx, split: train}
  eval:  {path: mnist, format: idx, split: test}
train:
  epochs: 1
  batch: 8
  optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
)";

inline Resolved resolve(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return resolve_text(yaml, "recipe.yaml", "/recipes", overrides);
}

inline Resolved small_with(const std::vector<std::string>& overrides) { return resolve(kSmall, overrides); }

// kSmall with `from` replaced by `to`.
inline std::string small_but(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The message with which a recipe is refused; a test fails when it is accepted, or refused with another kind.
inline std::string refusal(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    resolve(yaml, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "accepted:\n" << yaml;
  return {};
}

inline std::string set_refusal(const std::string& override_text) { return refusal(kSmall, {override_text}); }

}  // namespace skytrain::recipe
