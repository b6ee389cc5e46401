#include "config/command_line.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "config/help.h"
#include "config/json.h"
#include "config/spelling.h"
#include "config/toml.h"
#include "config/train_config.h"
#include "tests/config/test_options.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

TestOptions read(std::vector<std::string> arguments) {
  TestOptions options;
  read_options(fields_of(options), arguments);
  return options;
}

TEST(CommandLine, AcceptsEverySpelling) {
  TestOptions options = read({"--top-k", "5", "--temperature=-0.0", "--quiet", "--model.layers=3", "--no-model.bias",
                              "--compile.disable_passes=fuse,pad_vocab", "--train.out", "my run"});
  EXPECT_EQ(options.top_k, 5);
  EXPECT_TRUE(options.quiet);
  EXPECT_EQ(options.run.model.layers, 3);
  EXPECT_FALSE(options.run.model.bias);
  EXPECT_EQ(options.run.compile.disable_passes, (std::vector<std::string>{"fuse", "pad_vocab"}));
  EXPECT_EQ(options.run.train.out, "my run");
}

TEST(CommandLine, NumbersAreReadAsPeopleWriteThem) {
  TestOptions options = read({"--train.steps=1e4", "--train.total_batch=0.5M", "--train.seed=10B", "--top-k", "3k",
                              "--temperature=2k", "--optimizer.lr=3e-4"});
  EXPECT_EQ(options.run.train.steps, 10'000);
  EXPECT_EQ(options.run.train.total_batch, 500'000);
  EXPECT_EQ(options.run.train.seed, 10'000'000'000);
  EXPECT_EQ(options.top_k, 3000);
  EXPECT_EQ(options.temperature, 2000);
  EXPECT_EQ(options.run.optimizer.lr, 3e-4);
  expect_user_error([] { read({"--train.steps=1.5"}); }, {"expected a whole number of at least 0, got 1.5"});
  expect_user_error([] { read({"--train.steps=1.0005k"}); }, {"expected a whole number", "got 1000.5"});
  expect_user_error([] { read({"--train.steps=1.000000000000000000001"}); },
                    {"expected a whole number", "got the text"});
  expect_user_error([] { read({"--train.steps=10000000T"}); }, {"at most 9223372036854775807, got 1e+19"});
  expect_user_error([] { read({"--train.steps=10Q"}); }, {"expected a whole number", "got the text \"10Q\""});
}

TEST(CommandLine, ACommaInAnItemStandsBehindABackslash) {
  auto path_of = [](const std::string& text) { return read({"--data.path=" + text}).run.data.path; };
  using List = std::vector<std::string>;
  EXPECT_EQ(path_of("a,b"), (List{"a", "b"}));
  EXPECT_EQ(path_of("data/a\\,b"), List{"data/a,b"});
  EXPECT_EQ(path_of("\\,a,b\\c,"), (List{",a", "b\\c"}));
}

TEST(CommandLine, TakesArgumentsInOrderAndTheListTakesTheRest) {
  TemporaryFolder folder;
  write_file_atomic(folder.path() / "run.toml", "threads = 2\n");
  TestOptions options = read({(folder.path() / "run.toml").string(), "a", "--quiet", "-", "--", "--b"});
  EXPECT_EQ(options.inputs, (std::vector<std::string>{"a", "-", "--b"}));
  EXPECT_EQ(options.run.threads, 2);
}

TEST(CommandLine, DefaultsThenFileThenOptions) {
  TemporaryFolder folder;
  std::string file = (folder.path() / "run.toml").string();
  write_file_atomic(file, "[model]\nlayers = 5\nheads = 4\n[train]\nsteps = 7\n");
  TestOptions options = read({"--model.layers=6", file});
  EXPECT_EQ(options.run.model.layers, 6);
  EXPECT_EQ(options.run.model.heads, 4);
  EXPECT_EQ(options.run.train.steps, 7);
  EXPECT_EQ(options.run.train.batch, TrainConfig().batch);
}

// steps, epochs and tokens are alternatives: the last source that says one of them counts.
TEST(CommandLine, AnAlternativeTakesThePlaceOfAnother) {
  TemporaryFolder folder;
  std::string file = (folder.path() / "run.toml").string();
  write_file_atomic(file, "[train]\nepochs = 2\n");
  auto length = [&](const std::vector<std::string>& arguments) {
    TrainConfig train = read(arguments).run.train;
    return std::tuple(train.steps, train.epochs, train.tokens);
  };
  EXPECT_EQ(length({file}), std::tuple(0, 2.0, 0)) << "in place of the default";
  EXPECT_EQ(length({file, "--train.steps=7"}), std::tuple(7, 0.0, 0));
  EXPECT_EQ(length({file, "--train.tokens=1e6"}), std::tuple(0, 0.0, 1'000'000));
  EXPECT_EQ(length({file, "--train.tokens=0"}), std::tuple(0, 2.0, 0)) << "0 says nothing";
  EXPECT_EQ(length({"--train.steps=7", "--train.steps=8"}), std::tuple(8, 0.0, 0));
  expect_user_error(
      [&] {
        read({file, "--train.tokens=9", "--train.epochs=1.5"});
      },
      {"[--train.epochs] expected either train.tokens or train.epochs, as each says the length of the "
       "run, got both; leave one out"});
  write_file_atomic(file, "[train]\nsteps = 9\ntokens = 5\n");
  expect_user_error([&] { read({file}); }, {"run.toml:3: train.tokens] expected either train.steps or train.tokens"});
}

TEST(CommandLine, SaysWhatTheUserGave) {
  TemporaryFolder folder;
  std::string file = (folder.path() / "run.toml").string();
  write_file_atomic(file, "[model]\nlayers = 5\n");
  TestOptions options;
  std::vector<std::string> arguments = {file, "--train.batch=4"};
  GivenOptions given = read_options(fields_of(options), arguments);
  EXPECT_EQ(given.arguments, arguments);
  EXPECT_TRUE(given.has("model.layers"));
  EXPECT_TRUE(given.has("train.batch")) << "though it is the default's value";
  EXPECT_FALSE(given.has("train.steps"));
}

TEST(CommandLine, SaysWhatTheUserChose) {
  TemporaryFolder folder;
  auto given = [&](const std::string& name, const std::string& text) {
    TestOptions options;
    write_file_atomic(folder.path() / name, text);
    std::vector<std::string> arguments = {(folder.path() / name).string(), "--optimizer.lr=1e-4"};
    return read_options(fields_of(options), arguments);
  };
  TestOptions changed;
  changed.run.train.batch = 7;
  GivenOptions few = given("few.toml", "[train]\nbatch = 4\n"), all = given("all.toml", print_toml(fields_of(changed))),
               run = given("config.json", to_json(changed.run));
  EXPECT_TRUE(few.chose("train.batch")) << "the default, but written by hand";
  for (const GivenOptions* one : {&few, &all, &run}) {
    EXPECT_TRUE(one->chose("optimizer.lr")) << "typed";
    EXPECT_TRUE(one->has("train.batch"));
    EXPECT_FALSE(one->chose("train.steps"));
    EXPECT_EQ(one->options.size(), 1u);
    EXPECT_EQ(one->options[0].typed, "1e-4");
  }
  EXPECT_TRUE(all.chose("train.batch")) << "of all keys the one that differs from its default";
  EXPECT_FALSE(run.chose("train.batch")) << "a run wrote it";
}

TEST(CommandLine, APresetCountsAsGivenWhereItStands) {
  TemporaryFolder folder;
  std::string file = (folder.path() / "run.toml").string();
  write_file_atomic(file, "[model]\nlayers = 5\ndropout = 0.1\n");
  TestOptions options = read({file, "--model.heads=8", "--model.preset=gpt2-355m"});
  EXPECT_EQ(options.run.model.layers, 24) << "the command line's preset outranks the file";
  EXPECT_EQ(options.run.model.heads, 8) << "an explicit key outranks the preset beside it";
  EXPECT_EQ(options.run.model.dropout, 0.1);
}

TEST(CommandLine, FilesSetOnlyTheRunsKeys) {
  TemporaryFolder folder;
  std::string file = (folder.path() / "run.toml").string();
  write_file_atomic(file, "top_k = 3\n");
  expect_user_error([&] { read({file}); }, {"expected a known key, got 'top_k'"});
}

TEST(CommandLine, MistakesSayWhatWasExpected) {
  expect_user_error([] { read({"--model.layer=2"}); }, {"did you mean 'model.layers'?"});
  for (const char* key : {"--lr=1", "--train.lr=1"})
    expect_user_error([&] { read({key}); }, {"did you mean 'optimizer.lr'?"});
  expect_user_error([] { read({"--layers=2"}); }, {"did you mean 'model.layers'?"});
  expect_user_error([] { read({"--model.layers=two"}); },
                    {"[--model.layers] expected a whole number from 1 to 10000, got the text \"two\""});
  expect_user_error([] { read({"--model.layers=1e30"}); }, {"expected a whole number"});
  expect_user_error([] { read({"--model.layers"}); }, {"got nothing; write --model.layers=VALUE"});
  expect_user_error([] { read({"--model.layers", "--quiet"}); }, {"got nothing"});
  for (const char* yes : {"true", "on", "yes", "1"}) EXPECT_TRUE(read({std::string("--quiet=") + yes}).quiet) << yes;
  for (const char* no : {"false", "off", "no", "0"})
    EXPECT_FALSE(read({"--quiet", std::string("--quiet=") + no}).quiet) << no;
  expect_user_error([] { read({"--quiet=maybe"}); }, {"[--quiet] expected true or false"});
  expect_user_error([] { read({"-k"}); }, {"expected an option such as --key=value"});
  expect_user_error([] { read({"--show=none"}); }, {"[--show] expected all or kernels"});
  expect_user_error([] { read({"no/such/run.toml"}); }, {"no/such/run.toml"});
}

struct Required {
  std::string input;
  int64_t count = 0;
};

void visit(FieldList& v, Required& c) {
  v.positional("input", c.input, "a file of text");
  v.positional("count", c.count, "how many", false);
}

TEST(CommandLine, RequiredArgumentsAreMissed) {
  Required options;
  std::vector<Field> fields = fields_of(options);
  expect_user_error([&] { read_options(fields, {}); }, {"[input] expected a file of text, got nothing"});
  std::vector<std::string> arguments = {"a.txt", "4"};
  read_options(fields, arguments);
  EXPECT_EQ(options.count, 4);
  arguments.push_back("b.txt");
  expect_user_error([&] { read_options(fields, arguments); },
                    {"[b.txt] expected 2 arguments without a name, got one more"});
  EXPECT_EQ(usage(fields), "INPUT [COUNT]");
}

TEST(Help, NamesEveryFieldWithItsDefault) {
  TestOptions options;
  std::vector<Field> fields = fields_of(options);
  std::string text = help_text(fields), markdown = help_markdown(fields) + help_markdown(fields_of(options.run));
  for (const Field& field : fields) {
    std::string name = field.is_positional() ? "" : "--" + option_spelling(field.key);
    EXPECT_NE(text.find(name), std::string::npos) << field.key;
    EXPECT_NE(text.find(field.help), std::string::npos) << field.key;
    EXPECT_NE(markdown.find(name), std::string::npos) << field.key;
  }
  EXPECT_NE(text.find("(auto, fp32, tf32, bf16, fp16, fp8) [\"auto\"]"), std::string::npos) << text;
  EXPECT_EQ(usage(fields), "[CONFIG] [INPUTS...] [--key=value ...]");
}

TEST(Help, MarkdownOfACommandLeavesOutTheConfiguration) {
  TestOptions options;
  std::string markdown = help_markdown(fields_of(options));
  EXPECT_NE(markdown.find("`--top-k`"), std::string::npos);
  for (const Field& field : fields_of(options.run))
    EXPECT_EQ(markdown.find("`--" + field.key + "`"), std::string::npos) << field.key;
}

}  // namespace
}  // namespace tokamak
