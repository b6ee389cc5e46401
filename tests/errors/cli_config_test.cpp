// Mistakes on the command line and in run files, through the program itself.
#include <gtest/gtest.h>

#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using test::tiny_arguments;

class CliConfig : public testing::Test {
 protected:
  /// `tokamak train` with arguments besides those of the tiny run; fails before it looks at any data.
  ProgramResult train(const std::vector<std::string>& more) {
    return run_program(folder_.path(), tiny_arguments("train", more));
  }

  ProgramResult train_with_file(const std::string& toml) {
    write_file_quickly(folder_ / "run.toml", toml);
    return run_program(folder_.path(), {"train", "run.toml"});
  }

  TemporaryFolder folder_;
};

TEST_F(CliConfig, UnknownCommand) {
  expect_refused(run_program(folder_.path(), {"trian"}),
                 {"expected a command, got 'trian'", "did you mean 'train'?", "tokamak --help"});
  expect_refused(run_program(folder_.path(), {"ledger", "run"}), {"got 'ledger'", "did you mean 'data ledger'?"});
}

TEST_F(CliConfig, NoCommandListsThem) {
  ProgramResult result = run_program(folder_.path(), {});
  EXPECT_EQ(result.status, 1);
  for (const char* piece : {"usage: tokamak COMMAND", "prepare", "train", "generate"})
    EXPECT_NE(result.err.find(piece), std::string::npos) << result.err;
}

TEST_F(CliConfig, HeadsThatDoNotDivideTheWidth) {
  expect_refused(train({"--model.heads=3"}),
                 {"[model.heads]", "divisor of model.width = 32", "got 3", "change one of them"});
}

TEST_F(CliConfig, UnknownKey) {
  expect_refused(train({"--train.stepz=3"}),
                 {"[--train.stepz]", "expected a known key", "did you mean 'train.steps'?"});
  expect_refused(train_with_file("[train]\nsteps = 3\nbacth = 2\n"), {"run.toml:3: train.bacth", "'train.batch'?"});
}

TEST_F(CliConfig, UnknownSection) {
  expect_refused(train_with_file("[tarin]\nsteps = 3\n"),
                 {"run.toml:1: tarin", "known section", "did you mean 'train'?"});
}

TEST_F(CliConfig, SyntaxErrorNamesItsLine) {
  expect_refused(train_with_file("[train]\nsteps = 3\nbatch = = 2\n"), {"run.toml:3", "expected TOML"});
  expect_refused(train_with_file("[model]\npreset = small\n"), {"run.toml:2", "text stands in quotes"});
}

TEST_F(CliConfig, WrongType) {
  expect_refused(train({"--train.steps=many"}),
                 {"[--train.steps]", "expected a whole number", "got the text \"many\""});
  expect_refused(train_with_file("[model]\nbias = 3\n"), {"run.toml:2: model.bias", "true or false"});
}

TEST_F(CliConfig, NegativeNumbers) {
  expect_refused(train({"--train.batch=-3"}), {"[--train.batch]", "expected a whole number from 1", "got -3"});
  expect_refused(train({"--optimizer.lr=-1"}), {"[--optimizer.lr]", "from 0 to 1e+30", "got -1"});
}

TEST_F(CliConfig, TotalBatchThatDoesNotDivide) {
  expect_refused(train({"--train.total_batch=33"}),
                 {"[train.total_batch]", "multiple of train.batch x model.context = 2 x 16 = 32", "got 33", "use 64"});
}

TEST_F(CliConfig, PipelineOfMoreStagesThanLayers) {
  expect_refused(train({"--model.layers=2", "--mesh.pipe=5"}),
                 {"[mesh.pipe]", "model.layers + 2 = 4", "up to 4 stages"});
}

TEST_F(CliConfig, UnknownPreset) {
  expect_refused(train({"--model.preset=gpt3"}), {"[--model.preset]", "gpt2-124m", "gpt2-1558m", "\"gpt3\""});
}

TEST_F(CliConfig, UnknownPass) {
  expect_refused(
      run_program(folder_.path(), {"explain", "--nominal", "--model.vocab=300", "--compile.disable_passes=fusee"}),
      {"disable_passes", "expected names of passes", "got 'fusee'", "did you mean 'fuse'?"});
}

TEST_F(CliConfig, KeysThatAreNoMore) {
  expect_refused(train({"--mesh.halves"}), {"[--mesh.halves]", "a batch in two halves and is no more", "leave it out"});
  expect_refused(train({"--no-mesh.halves"}), {"[--no-mesh.halves]", "leave it out"});
  expect_refused(train_with_file("[mesh]\nhalves = true\n"), {"run.toml:2: mesh.halves", "leave it out"});
}

TEST_F(CliConfig, SwitchesOfPassesOfEarlierVersions) {
  constexpr const char* kInstead = "--compile.disable_passes=fuse";
  expect_refused(train({"--compile.fuse=false"}), {"[--compile.fuse]", "switched the pass fuse", kInstead});
  expect_refused(train({"--no-compile.fuse"}), {"[--no-compile.fuse]", kInstead});
  expect_refused(train_with_file("[compile]\npad_vocab = false\n"),
                 {"run.toml:2: compile.pad_vocab", "disable_passes = [\"pad_vocab\"] under [compile]"});
}

TEST_F(CliConfig, KeysOfRunsAreNoMisspeltOnesOfACommand) {
  auto refused = [&](const char* command, const char* key, const char* near) {
    ProgramResult result = run_program(folder_.path(), {command, "x", std::string("--") + key + "=2"});
    expect_refused(result, {std::string("[--") + key + "]", "one of runs", near});
    EXPECT_EQ(result.err.find("did you mean"), std::string::npos) << result.err;
  };
  refused("eval", "mesh.data", "this command takes --mesh.tensor;");
  refused("eval", "data.path", "this command takes --data;");
  refused("prepare", "data.token_type", "this command takes --token-type;");
  refused("generate", "optimizer.lr", "which is one of runs; --help");
}

TEST_F(CliConfig, SuggestsTheSpellingOfTheHelp) {
  for (const char* typed : {"--vocab_siz=3", "--vocab-siz=3"})
    expect_refused(run_program(folder_.path(), {"prepare", "text.txt", typed}),
                   {"expected a known key, got 'vocab-siz'; did you mean 'vocab-size'?"});
}

// Once, before the first step; the same in a run file.
TEST_F(CliConfig, SettingsThatDoNothingAreTold) {
  test::make_tiny_data(folder_.path());
  auto count = [](const std::string& text, const std::string& piece) {
    int found = 0;
    for (size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1)) ++found;
    return found;
  };
  write_file_quickly(folder_ / "run.toml", "[optimizer]\nmomentum = 0.5\n");
  ProgramResult result = train({"run.toml", "--device=cpu", "--mesh.zero=1", "--train.sample_tokens=9"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* note : {"mesh.zero = 1 has no effect: there is only one rank",
                           "optimizer.momentum = 0.5 has no effect: the rule of the update is adamw",
                           "train.sample_tokens = 9 has no effect: no sample"}) {
    EXPECT_EQ(count(result.out, note), 1) << note << "\n" << result.out;
    EXPECT_LT(result.out.find(note), result.out.find("step ")) << result.out;
  }
  EXPECT_EQ(count(result.out, "has no effect"), 3) << result.out;
}

TEST_F(CliConfig, MissingRunFile) {
  expect_refused(run_program(folder_.path(), {"train", "nowhere.toml"}), {"nowhere.toml", "check the path"});
}

TEST_F(CliConfig, GenerateOutsideItsRange) {
  expect_refused(run_program(folder_.path(), {"generate", "--temperature=-1"}),
                 {"[--temperature]", "at least 0", "-1"});
  expect_refused(run_program(folder_.path(), {"generate", "--top_p=1.5"}), {"[--top_p]", "1.5"});
  expect_refused(run_program(folder_.path(), {"generate", "run", "Once"}), {"[Once]", "one more", "--prompt=TEXT"});
}

TEST_F(CliConfig, GenerateOptionsThatExcludeEachOther) {
  expect_refused(run_program(folder_.path(), {"generate", "--interactive", "--json"}),
                 {"[interactive]", "without --json", "leave one out"});
  expect_refused(run_program(folder_.path(), {"generate", "--interactive", "--samples=2"}), {"without --samples"});
  expect_refused(run_program(folder_.path(), {"generate", "--log-probabilities"}), {"expected --json", "add --json"});
  expect_refused(run_program(folder_.path(), {"generate", "--repetition_penalty=0"}), {"[--repetition_penalty]", "0"});
}

TEST_F(CliConfig, NamesOfOtherProgramsGetAHint) {
  expect_refused(train({"--batch_size=4"}), {"[--batch_size] expected a known key, got 'batch-size'; that is "
                                             "'train.batch' here: sequences of a micro-batch, of all ranks together"});
  expect_refused(train({"--model.n_layer=4"}), {"that is 'model.layers' here"});
  expect_refused(train({"--optimizer.learning_rate=1e-3"}), {"that is 'optimizer.lr' here"});
  expect_refused(train({"--mesh.dp=2"}), {"that is 'mesh.data' here"});
  expect_refused(train({"--compile=false"}), {"that is 'compile.disable_passes' here"});
  expect_refused(train({"-b", "4"}), {"got '-b'; that is 'train.batch' here"});
  expect_refused(train({"--tokens=10B"}), {"got 'tokens'; did you mean 'train.tokens'?"});
  expect_refused(train_with_file("[train]\nmax_steps = 4\n"), {"run.toml:2: train.max_steps", "'train.steps' here"});
  expect_refused(run_program(folder_.path(), {"generate", "--max_new_tokens=4"}), {"that is 'tokens' here"});
}

TEST_F(CliConfig, HelpIsAskedForInManyWays) {
  auto out = [&](std::vector<std::string> arguments) {
    ProgramResult result = run_program(folder_.path(), std::move(arguments));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  std::string train = out({"train", "--help"});
  EXPECT_NE(train.find("--train.batch=N"), std::string::npos);
  EXPECT_EQ(out({"help", "train"}), train);
  EXPECT_EQ(out({"train", "help"}), train);
  EXPECT_EQ(out({"help"}), out({"--help"}));
  EXPECT_EQ(out({"data", "help"}), out({"data", "--help"}));
  EXPECT_EQ(out({"data", "inspect", "help"}), out({"data", "inspect", "--help"}));
  EXPECT_NE(out({"help", "names"}).find("nanoGPT: batch_size; llm.c: -b;"), std::string::npos);
  write_file_quickly(folder_ / "help", "[train]\nstepz = 3\n");
  expect_refused(run_program(folder_.path(), {"train", "help"}), {"help:2: train.stepz"});
}

// A command without a run configuration has none to print.
TEST_F(CliConfig, PrintConfigOfACommandWithoutOne) {
  expect_refused(run_program(folder_.path(), {"generate", "--print-config"}),
                 {"[--print-config]", "takes a run file", "tokamak generate --help"});
}

TEST_F(CliConfig, SourceOfAKernelThatIsNotGenerated) {
  expect_refused(run_program(folder_.path(), {"explain", "--nominal", "--device=cpu", "--source=0"}),
                 {"[explain] expected --source for a GPU", "--device=cuda"});
}

// 1.5 billion parameters at a batch of half a million tokens: refused by the plan, with nothing of it allocated.
TEST_F(CliConfig, AModelTooLargeForTheMemory) {
  test::make_tiny_data(folder_.path());
  ProgramResult result = run_program(
      folder_.path(), {"train", "--model.layers=2", "--model.heads=64", "--model.width=8192", "--model.context=1024",
                       "--model.vocab=0", "--train.batch=4096", "--train.out=huge"});
  expect_refused(result, {"[memory]", "expected a plan of at most", "got a peak of", "TiB", "parameters 6.0",
                          "use a smaller model", "largest tensor is", "--train.batch"});
  EXPECT_LT(result.peak_bytes, int64_t(4) << 30);  // less than the parameters; the sanitizers take their share of it
  EXPECT_FALSE(std::filesystem::exists(folder_ / "huge"));
}

}  // namespace
}  // namespace tokamak
