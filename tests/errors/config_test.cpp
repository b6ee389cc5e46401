// Mistakes in run files and options: each says where, what was expected, what came and what to do.
#include <gtest/gtest.h>

#include "base/file.h"
#include "config/command_line.h"
#include "config/config.h"
#include "config/validate.h"
#include "config/visit.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

struct Options {
  std::string config;
  RunConfig run;
};

void visit(FieldList& v, Options& c) {
  v.config_file("config", c.config, "run file (TOML)");
  v.config(c.run);
}

/// What a command does before its work: read everything, then validate.
void read(const std::string& toml, std::vector<std::string> arguments = {}) {
  TemporaryFolder folder;
  write_file_atomic(folder / "run.toml", toml);
  arguments.push_back((folder / "run.toml").string());
  Options options;
  read_options(fields_of(options), arguments);
  validate(options.run);
}

TEST(ConfigMistake, HeadsThatDoNotDivideTheWidth) {
  expect_user_error([] { read("[model]\nheads = 7\n"); },
                    {"[model.heads]", "expected a divisor of model.width = 768", "got 7", "change one of them"});
}

TEST(ConfigMistake, UnknownKey) {
  expect_user_error([] { read("[optimizer]\nlearning_rate = 1e-3\nwarmup_step = 3\n"); },
                    {"run.toml:2: optimizer.learning_rate", "expected a known key"});
  expect_user_error([] { read("[optimizer]\nwarmup_step = 3\n"); }, {"did you mean 'optimizer.warmup_steps'?"});
  expect_user_error([] { read("", {"--trian.steps=3"}); }, {"[--trian.steps]", "did you mean 'train.steps'?"});
}

TEST(ConfigMistake, WrongType) {
  expect_user_error([] { read("[train]\nsteps = \"many\"\n"); },
                    {"run.toml:2: train.steps", "expected a whole number of at least 0", "got the text \"many\""});
  expect_user_error([] { read("", {"--train.resume=perhaps"}); }, {"expected true or false", "\"perhaps\""});
}

TEST(ConfigMistake, NegativeNumbers) {
  expect_user_error([] { read("[optimizer]\nlr = -0.1\n"); },
                    {"run.toml:2: optimizer.lr", "expected a number from 0 to 1e+30", "got -0.1"});
  expect_user_error([] { read("", {"--train.batch", "-4"}); }, {"[--train.batch]", "from 1 to", "got -4"});
}

TEST(ConfigMistake, UnknownPreset) {
  expect_user_error(
      [] { read("[model]\npreset = \"gpt3\"\n"); },
      {"model.preset",
       "gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1558m, gpt3-2.7b, gpt3-6.7b, gpt3-13b, gpt3-175b, llama2-7b, "
       "llama2-13b",
       "\"gpt3\""});
}

TEST(ConfigMistake, MissingRunFile) {
  Options options;
  std::vector<std::string> arguments = {"missing/run.toml"};
  expect_user_error([&] { read_options(fields_of(options), arguments); }, {"missing/run.toml", "check the path"});
}

}  // namespace
}  // namespace tokamak
