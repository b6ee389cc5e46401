#include "config/toml.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/visit.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

std::vector<Field> config_fields(RunConfig& config) {
  FieldList list;
  list.config(config);
  return std::move(list).take();
}

RunConfig load(std::string_view text) {
  RunConfig config;
  std::vector<Field> fields = config_fields(config);
  assign(fields, parse_toml(fields, text, "run.toml"));
  return config;
}

/// A legal value other than the field's present one.
Value another_value(const Field& field) {
  if (!field.rule.choices.empty()) return field.rule.choices.back();
  struct {
    const Rule& rule;
    Value operator()(bool* b) const { return !*b; }
    Value operator()(int64_t* n) const { return *n + (double(*n + 3) <= rule.most ? 3 : 1); }
    Value operator()(double* x) const { return *x * 0.7 + 0.1 / 3 >= rule.least ? *x * 0.7 + 0.1 / 3 : *x * 1.3; }
    Value operator()(std::string*) const { return std::string("a \"b\" \\ c\n\t\x01\x7f d \xc3\xa9"); }
    Value operator()(Precision*) const { return std::string("a precision has choices"); }
    Value operator()(std::vector<std::string>*) const { return std::vector<std::string>{"x", "", "y \"z\""}; }
  } change{field.rule};
  return std::visit(change, field.target);
}

TEST(Toml, EveryFieldSurvivesPrintingAndReading) {
  RunConfig defaults;
  for (const Field& field : config_fields(defaults)) {
    RunConfig changed;
    Value value = another_value(field);
    std::vector<Field> fields = config_fields(changed);
    assign(fields, {{field.key, value, field.key}});
    ASSERT_NE(format_value(get(*find_field(fields, field.key))), format_value(get(field))) << field.key;
    RunConfig read = load(print_toml(fields));
    EXPECT_EQ(get(*find_field(config_fields(read), field.key)), value) << field.key << "\n" << print_toml(fields);
  }
}

TEST(Toml, APrintedPresetKeepsTheKeysThatOverrideIt) {
  RunConfig config = load("[model]\nlayers = 2\npreset = \"gpt2-355m\"\n");
  EXPECT_EQ(config.model.layers, 2);
  EXPECT_EQ(config.model.width, 1024);
  RunConfig again = load(print_toml(config_fields(config)));
  EXPECT_EQ(again.model.layers, 2);
  EXPECT_EQ(again.model.width, 1024);
}

TEST(Toml, PrintsASpaceBetweenValueAndComment) {
  RunConfig config;
  std::string text = print_toml(config_fields(config));
  for (size_t at = text.find('#'); at != text.npos; at = text.find('#', at + 1)) EXPECT_EQ(text[at - 1], ' ');
}

TEST(Toml, NumbersWithoutAFractionAreWhole) {
  EXPECT_EQ(load("[train]\nsteps = 1e4\n").train.steps, 10'000);
  EXPECT_EQ(load("[train]\nsteps = 20_000\n").train.steps, 20'000);
  expect_user_error([] { load("[train]\nsteps = 1.5\n"); }, {"[run.toml:2: train.steps]", "got 1.5"});
  expect_user_error([] { load("[train]\nseed = 1e17\n"); }, {"of at least 0, with all its digits, got 1e+17"});
  expect_user_error([] { load("[train]\nsteps = 1e30\n"); }, {"at most 9223372036854775807, got 1e+30"});
  expect_user_error([] { load("[train]\nsteps = \"10k\"\n"); }, {"got the text \"10k\""});
}

TEST(Toml, UnknownKeysSuggestTheNearest) {
  expect_user_error(
      [] { load("threads = 1\n[model]\nlayer = 2\n"); },
      {"[run.toml:3: model.layer] expected a known key, got 'model.layer'; did you mean 'model.layers'?"});
  expect_user_error([] { load("[modle]\nlayers = 2\n"); },
                    {"[run.toml:1: modle] expected a known section, got 'modle'; did you mean 'model'?"});
  expect_user_error([] { load("learning_rate_of_the_moon = 2\n"); }, {"got 'learning_rate_of_the_moon'"});
  expect_user_error([] { load("[nothing]\n"); }, {"expected a known section, got 'nothing'"});
}

TEST(Toml, MistakesNameFileAndLine) {
  expect_user_error([] { load("[model]\n\nlayers = \"twelve\"\n"); },
                    {"[run.toml:3: model.layers] expected a whole number from 1 to 10000, got the text \"twelve\""});
  expect_user_error([] { load("[model]\nlayers = \n"); }, {"[run.toml:2] expected TOML"});
  expect_user_error([] { load("model = 3\n"); }, {"[run.toml:1: model] expected a section"});
  expect_user_error([] { load("[threads]\n"); },
                    {"[run.toml:1: threads] expected a whole number from 0 to 65536, got a section"});
  expect_user_error([] { load("[train]\nseed = 2020-01-01\n"); }, {"got a date or time"});
  expect_user_error([] { load("[compile]\ndisable_passes = [1]\n"); }, {"expected a list of texts"});
  expect_user_error([] { load("threads = 1\nthreads = 2\n"); }, {"[run.toml:2] expected TOML"});
}

TEST(Toml, RefusesKeysOfManyParts) {
  std::string key = "model";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  expect_user_error([&] { load("# " + key + "\nthreads = 1\n" + key + " = 1\n"); },
                    {"run.toml:3", "key of a few parts"});
  expect_user_error([&] { load("[" + key + "]\n"); }, {"run.toml:1", "key of a few parts"});
  std::string path(200, '.');
  EXPECT_EQ(load("train.out = \"\\\"" + path + "\"").train.out, "\"" + path);
  std::string many;  // of few parts each
  for (int i = 0; i < 101; ++i) many += "x" + std::to_string(i) + ".y = 1\n";
  expect_user_error([&] { load(many); }, {"expected a known section, got 'x0'"});
  expect_user_error([&] { load("x = {a = 'ends with a \\', " + key + " = 1}\n"); }, {"key of a few parts"});
}

}  // namespace
}  // namespace tokamak
