#include "autodiff/rate_groups.h"

#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

const std::vector<std::string> kNames = {"wte.weight",
                                         "wpe.weight",
                                         "h.0.ln_1.weight",
                                         "h.0.ln_1.bias",
                                         "h.0.attn.c_attn.weight",
                                         "h.10.attn.c_attn.weight"};

OptimizerConfig with(std::vector<std::string> groups) {
  OptimizerConfig config;
  config.groups = std::move(groups);
  return config;
}

TEST(RateGroups, PatternsAreOfWholeNames) {
  EXPECT_TRUE(matches_name("wte*", "wte.weight"));
  EXPECT_TRUE(matches_name("*.bias", "h.0.ln_1.bias"));
  EXPECT_TRUE(matches_name("h.?.*", "h.0.ln_1.bias"));
  EXPECT_TRUE(matches_name("*", ""));
  EXPECT_TRUE(matches_name("h.*.attn.*weight", "h.10.attn.c_attn.weight"));
  EXPECT_FALSE(matches_name("h.?.*", "h.10.attn.c_attn.weight"));
  EXPECT_FALSE(matches_name("wte", "wte.weight"));
  EXPECT_FALSE(matches_name("te*", "wte.weight"));
  EXPECT_FALSE(matches_name("?", ""));
}

TEST(RateGroups, AreReadFromText) {
  std::vector<RateGroup> groups = rate_groups(with({"wte*: lr=0.5 decay=0", "*.bias:decay=1e-3", " h.* : lr=2"}));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].pattern, "wte*");
  EXPECT_EQ(groups[0].lr, 0.5);
  EXPECT_EQ(groups[0].weight_decay, 0);
  EXPECT_FALSE(groups[1].lr);
  EXPECT_EQ(groups[1].weight_decay, 1e-3);
  EXPECT_EQ(groups[2].pattern, "h.*");
  EXPECT_FALSE(groups[2].weight_decay);
}

TEST(RateGroups, OtherTextIsRefused) {
  for (auto [text, why] : {std::pair("wte*", "there is no colon"),
                           {": lr=1", "there is no pattern"},
                           {"wte*:", "it says nothing"},
                           {"wte*: rate=1", "'rate=1' is neither lr= nor decay="},
                           {"wte*: lr", "'lr' is neither"},
                           {"wte*: lr=x", "'x' is no number"},
                           {"wte*: lr=1x", "'1x' is no number"},
                           {"wte*: lr=-1", "-1 is not from 0"},
                           {"wte*: decay=nan", "nan is not from 0"}})
    expect_user_error([text = text] { rate_groups(with({text})); },
                      {"[optimizer.groups] expected 'pattern: lr=SHARE decay=NUMBER'", why});
}

TEST(RateGroups, APatternOfNothingIsRefusedWithWhatIsNear) {
  check_rate_groups(with({"wte*: lr=1", "*: decay=0"}), kNames);
  expect_user_error(
      [] {
        check_rate_groups(with({"*: decay=0", "*.c_atn.*: lr=1"}), kNames);
      },
      {"[optimizer.groups] expected a pattern of parameters' names, got '*.c_atn.*'", "none of 6",
       "wte.weight, wpe.weight", "did you mean 'c_attn'?"});
}

TEST(RateGroups, AreTold) {
  EXPECT_EQ(describe_rate_groups(with({"h.*: lr=0.5", "wte.weight: lr=2 decay=0"}), kNames),
            (std::vector<std::string>{"optimizer.groups h.*: 4 tensors (h.0.ln_1.weight, ...), learning rate x 0.5",
                                      "optimizer.groups wte.weight: 1 tensor (wte.weight), learning rate x 2, weight "
                                      "decay 0"}));
}

// A later one wins; a rate is a share of what the parameter's rule has.
TEST(RateGroups, ParametersHaveTheirRates) {
  OptimizerConfig config = with({"*: lr=0.5", "w*: decay=0.3", "wte*: lr=3"});
  config.name = "muon";
  config.adamw_lr_ratio = 0.1;
  auto rates = [&](const char* name, Role role) {
    Argument argument{.name = name, .spec = {.role = role, .global = {8, 8}}};
    return Optimizer(config).rates_of(argument);
  };
  EXPECT_DOUBLE_EQ(rates("wte.weight", Role::kEmbedding).lr, 3 * 0.1);
  EXPECT_DOUBLE_EQ(rates("wte.weight", Role::kEmbedding).weight_decay, 0.3);
  EXPECT_DOUBLE_EQ(rates("h.0.w", Role::kMatrix).lr, 0.5);
  EXPECT_DOUBLE_EQ(rates("h.0.w", Role::kMatrix).weight_decay, config.weight_decay);
  EXPECT_DOUBLE_EQ(rates("w.bias", Role::kVector).weight_decay, 0.3) << "what is named decays, vectors too";
  EXPECT_DOUBLE_EQ(rates("h.0.bias", Role::kVector).weight_decay, 0);
}

}  // namespace
}  // namespace tokamak::test
