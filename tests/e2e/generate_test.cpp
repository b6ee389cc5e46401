// Text from a cache of keys and values is the text that the full forward pass gives at every position.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "tests/support/expect_error.h"
#include "tests/support/generated_text.h"
#include "tests/support/resolve_first.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

// More than the generator feeds at once, so that the prompt goes in by pieces and by single tokens.
constexpr int64_t kContext = 40;

class GenerateTest : public testing::Test {
 protected:
  explicit GenerateTest(bool pad_vocab = true, Precision precision = Precision::kFp32,
                        const std::string& family = "gpt2") {
    config_.model = {.layers = 2, .heads = 2, .width = 32, .context = kContext, .vocab = 301};
    config_.model.family = family;
    config_.model.kv_heads = 1, config_.model.window = 7;
    config_.model.window_pattern = "LS", config_.model.value_embeddings = 1, config_.model.softcap = 3;
    config_.train.batch = 1;
    config_.compile.precision = precision;
    if (!pad_vocab) config_.compile.disable_passes = {"pad_vocab"};
    session_ = std::make_unique<Session>(make_session(config_, platform_, *backend_));
    test::write_large_weights(*session_);
    full_ = std::make_unique<test::FullPass>(config_, platform_, *backend_, session_->store());
  }

  std::unique_ptr<Generator> make_generator(int64_t rows = 1) {
    auto generator = std::make_unique<Generator>(session_->resolved(), platform_, *backend_, rows, &session_->store());
    generator->take_weights();
    return generator;
  }

  void expect_same_as_full_pass(int64_t prompt_length, int64_t count) {
    std::vector<int32_t> prompt = test::some_tokens(prompt_length);
    std::vector<int32_t> generated = make_generator()->generate(prompt, count, {.temperature = 0}, 1);
    ASSERT_EQ(generated, full_->continue_text(prompt, count));
    EXPECT_GT(std::set<int32_t>(generated.begin(), generated.end()).size(), size_t(std::min<int64_t>(count, 4)) / 2);
  }

  RunConfig config_;
  Platform platform_ = cpu::nominal_platform();
  std::unique_ptr<Backend> backend_ = cpu::make_backend();
  std::unique_ptr<Session> session_;
  std::unique_ptr<test::FullPass> full_;
};

class GenerateUnpaddedTest : public GenerateTest {
 protected:
  GenerateUnpaddedTest() : GenerateTest(false) {}
};

class GenerateLlamaTest : public GenerateTest {
 protected:
  GenerateLlamaTest() : GenerateTest(true, Precision::kFp32, "llama") {}
};

class GenerateModernTest : public GenerateTest {
 protected:
  GenerateModernTest() : GenerateTest(true, Precision::kFp32, "modern") {}
};

TEST_F(GenerateModernTest, APromptInPieces) { expect_same_as_full_pass(35, 5); }
TEST_F(GenerateModernTest, OneTokenAtATime) { expect_same_as_full_pass(1, 30); }
TEST_F(GenerateLlamaTest, APromptInPieces) { expect_same_as_full_pass(35, 5); }
TEST_F(GenerateLlamaTest, OneTokenAtATime) { expect_same_as_full_pass(1, 30); }

TEST_F(GenerateTest, OneTokenAtATime) { expect_same_as_full_pass(1, 30); }
TEST_F(GenerateTest, APromptInPieces) { expect_same_as_full_pass(35, 5); }
TEST_F(GenerateTest, APromptThatFillsTheContext) { expect_same_as_full_pass(kContext, 3); }
// Of all of it, not of the half that is left when it overflows.
TEST_F(GenerateTest, WhatFollowsAFullContextDependsOnItsBeginning) {
  std::unique_ptr<Generator> generator = make_generator();
  int would_differ = 0;
  for (int64_t number = 0; number < 8; ++number) {
    std::vector<int32_t> prompt = test::some_tokens(kContext, number);
    EXPECT_EQ(generator->generate(prompt, 1, {.temperature = 0}, 1), full_->continue_text(prompt, 1)) << number;
    would_differ += full_->next(prompt) != full_->next(std::span(prompt).last(kContext / 2));
  }
  EXPECT_GT(would_differ, 0);
}
TEST_F(GenerateTest, TheContextOverflowsTwice) { expect_same_as_full_pass(3, 80); }
TEST_F(GenerateTest, APromptLongerThanTheContext) { expect_same_as_full_pass(kContext + 23, 30); }
TEST_F(GenerateUnpaddedTest, TheContextOverflows) { expect_same_as_full_pass(3, 50); }

class GenerateLowTest : public GenerateTest {
 protected:
  GenerateLowTest() : GenerateTest(true, Precision::kBf16) {}
};

// Each text beside others is what it is alone: prompts of all lengths, rows that end early and rows without a text.
TEST_F(GenerateTest, TextsSideBySide) {
  std::unique_ptr<Generator> generator = make_generator(5), alone = make_generator();
  for (double temperature : {0.0, 1.0}) {
    SamplingOptions options{.temperature = temperature, .top_k = 40};
    std::vector<GenerationRow> texts;
    for (int64_t length : {1, 35, int(kContext), 70}) texts.push_back({test::some_tokens(length, length), 9 + length});
    auto stops = [&](size_t row, size_t known) { return row == 1 && known == 20; };
    std::vector<size_t> known(texts.size());
    auto generated =
        generator->generate(texts, 60, options, [&](size_t row, int32_t) { return !stops(row, ++known[row]); });
    ASSERT_EQ(generated.size(), texts.size());
    for (size_t r = 0; r < texts.size(); ++r) {
      std::vector<int32_t> expected = alone->generate(texts[r].prompt, r == 1 ? 20 : 60, options, texts[r].seed);
      EXPECT_EQ(generated[r], expected) << "row " << r;
      if (temperature == 0) EXPECT_EQ(generated[r], full_->continue_text(texts[r].prompt, int64_t(expected.size())));
    }
  }
}

// What the device chooses the host chooses, too, where it has to see the logits; a full context included.
TEST_F(GenerateTest, TheHostChoosesAsTheDeviceDoes) {
  std::unique_ptr<Generator> generator = make_generator(3);
  std::vector<GenerationRow> texts;
  for (int64_t length : {1, 35, 70}) texts.push_back({test::some_tokens(length, length), 9 + length});
  for (double temperature : {0.0, 1.0}) {
    SamplingOptions options{.temperature = temperature, .top_k = 40, .top_p = 0.9};
    auto expected = generator->generate(texts, 60, options);
    options.log_probabilities = true;
    size_t known = 0;
    EXPECT_EQ(generator->generate(texts, 60, options,
                                  [&](size_t row, int32_t) {
                                    known += generator->log_probability(row) < 0;
                                    return true;
                                  }),
              expected)
        << temperature;
    EXPECT_GT(known, 150u);
  }
}

TEST_F(GenerateTest, APenaltyKeepsATextFromRepeatingItself) {
  std::unique_ptr<Generator> generator = make_generator();
  auto distinct = [&](double penalty) {
    SamplingOptions options{.temperature = 0, .repetition_penalty = penalty};
    std::vector<int32_t> text = generator->generate(test::some_tokens(3), 30, options, 1);
    return std::set<int32_t>(text.begin(), text.end()).size();
  };
  EXPECT_EQ(distinct(1e6), 30u) << "what was there is never the likeliest again";
  EXPECT_LT(distinct(1), 30u);
}

TEST_F(GenerateTest, ABrokenModelIsAnErrorToTheHostToo) {
  std::vector<float> broken(32, NAN);
  session_->store().write("ln_f.weight", broken.data(), 32 * 4);
  expect_user_error([&] { make_generator()->generate(test::some_tokens(3), 2, {.min_p = 0.1}, 1); },
                    {"expected finite logits"});
}

TEST(KeptPrompt, IsAsMuchAsFitsBesideWhatIsToCome) {
  EXPECT_EQ(kept_prompt(100, 500, 100), 100) << "all of it is seen at first";
  EXPECT_EQ(kept_prompt(101, 30, 100), 70);
  EXPECT_EQ(kept_prompt(1000, 1, 100), 99);
  EXPECT_EQ(kept_prompt(1000, 70, 100), 50) << "half at least";
  EXPECT_EQ(kept_prompt(9, 1, 1), 1);
}

TEST_F(GenerateTest, ABrokenModelIsAnError) {
  std::vector<float> broken(32, NAN);
  session_->store().write("ln_f.weight", broken.data(), 32 * 4);
  expect_user_error([&] { make_generator()->generate(test::some_tokens(3), 2, {}, 1); }, {"expected finite logits"});
}

// In bf16 parameters are kept in 16 bits, once; those that are read as they are stay one with the trained ones.
TEST_F(GenerateLowTest, WeightsAreKeptInSixteenBits) {
  std::unique_ptr<Generator> generator = make_generator();
  TensorStore &own = generator->weights(), &trained = session_->store();
  for (const char* name : {"wte.weight", "wpe.weight", "h.0.attn.c_attn.weight", "h.1.mlp.c_proj.weight"})
    EXPECT_EQ(own.type(name).dtype, DType::kBF16) << name;
  EXPECT_EQ(own.type("h.0.ln_1.weight").dtype, DType::kF32);
  EXPECT_EQ(own.data("h.0.ln_1.weight"), trained.data("h.0.ln_1.weight"));
  for (const Launch& launch : generator->decode().plan().launches)
    for (ValueId input : generator->decode().plan().graph.nodes()[size_t(launch.node)].inputs)
      if (const Argument* a = generator->decode().plan().graph.argument_of(input); a && a->spec.role == Role::kColumn) {
        EXPECT_EQ(generator->decode().plan().graph.dtype(input), DType::kBF16) << a->name;
      }
}

TEST_F(GenerateLowTest, NewWeightsAreTaken) {
  std::unique_ptr<Generator> generator = make_generator();
  std::vector<int32_t> prompt = test::some_tokens(3), before = generator->generate(prompt, 20, {.temperature = 0}, 1);
  session_->initialise();
  generator->take_weights();
  EXPECT_NE(generator->generate(prompt, 20, {.temperature = 0}, 1), before);
}

TEST_F(GenerateLowTest, TheTextIsMostlyThatOfTheFullPass) {
  std::vector<int32_t> tokens = test::some_tokens(5);
  std::vector<int32_t> generated = make_generator()->generate(tokens, 30, {.temperature = 0}, 1);
  int same = 0;  // sums in another order may turn a near tie
  for (int32_t token : generated) {
    same += full_->next(tokens) == token;
    tokens.push_back(token);
  }
  EXPECT_GE(same, 26);
}

TEST(GenerateProgram, TheSameSeedGivesTheSameText) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  ASSERT_EQ(run_program(folder.path(), test::tiny_arguments("train")).status, 0);
  auto generate = [&](const std::string& seed, const std::string& vocab) {
    ProgramResult result = run_program(
        folder.path(), {"generate", "run", "--prompt=the king", "--tokens=60", "--seed=" + seed, "--vocab=" + vocab});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  std::string text = generate("3", "");
  EXPECT_TRUE(text.starts_with("the king")) << text;
  EXPECT_EQ(generate("3", ""), text);
  EXPECT_NE(generate("4", ""), text);
  std::filesystem::copy(folder / "data", folder / "vocab");
  EXPECT_EQ(generate("3", "vocab"), text);
}

class GenerateCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    test::make_tiny_data(folder_->path());
    ASSERT_EQ(run_program(folder_->path(), test::tiny_arguments("train")).status, 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static ProgramResult generate(std::vector<std::string> more, const std::string& input = "") {
    std::vector<std::string> arguments = {"generate", "run", "--tokens=40", "--device=cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(folder_->path(), arguments, input);
  }

  static std::vector<nlohmann::json> objects(const std::string& out) {
    std::vector<nlohmann::json> list;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) list.push_back(nlohmann::json::parse(line));
    return list;
  }

  static std::unique_ptr<TemporaryFolder> folder_;
};
std::unique_ptr<TemporaryFolder> GenerateCommand::folder_;

// JSON has U+FFFD where bytes are no UTF-8, as tokens of an untrained model give them.
std::string in_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TEST_F(GenerateCommand, PrintsALineOfJsonForEachText) {
  ProgramResult plain = generate({"--prompt=the king", "--seed=5"});
  ProgramResult result = generate({"--prompt=the king", "--samples=3", "--seed=4", "--json", "--log-probabilities"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::vector<nlohmann::json> texts = objects(result.out);
  ASSERT_EQ(texts.size(), 3u) << result.out;
  std::string alone = plain.out.substr(8, plain.out.size() - 9);
  EXPECT_EQ(texts[1]["text"].dump(), in_json(alone)) << "of that seed";
  for (const nlohmann::json& text : texts) {
    EXPECT_EQ(text["prompt"], "the king");
    EXPECT_EQ(text["finish"], text["tokens"].size() == 40 ? "length" : "document");
    EXPECT_EQ(text["log_probabilities"].size(), text["tokens"].size());
    for (double log_probability : text["log_probabilities"]) EXPECT_LE(log_probability, 0);
    EXPECT_GT(text["tokens_per_second"].get<double>(), 0);
    EXPECT_EQ(text["kept_prompt_tokens"], text["prompt_tokens"]);
  }
  EXPECT_NE(texts[0]["text"], texts[2]["text"]);
}

TEST_F(GenerateCommand, StopsAtAString) {
  std::string whole = generate({"--prompt=the king"}).out;
  std::string made = whole.substr(8), stop = made.substr(10, 3);
  ProgramResult result = generate({"--prompt=the king", "--stop=zzz," + stop});
  EXPECT_EQ(result.out, "the king" + made.substr(0, made.find(stop)) + "\n");
  nlohmann::json text = objects(generate({"--prompt=the king", "--stop=" + stop, "--json"}).out).at(0);
  EXPECT_EQ(text["finish"], "stop");
  EXPECT_EQ(text["text"].dump(), in_json(made.substr(0, made.find(stop))));
}

TEST_F(GenerateCommand, TellsWhatOfAPromptIsSeen) {
  ProgramResult result = generate({"--prompt=" + test::tiny_text(400), "--tokens=6", "--rate"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("of the model's context of 16, 10 are left for it"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" tokens/s\n"), std::string::npos) << result.err;
  EXPECT_EQ(generate({"--prompt=the"}).err, "");
}

TEST_F(GenerateCommand, GoesOnFromWhatIsTyped) {
  ProgramResult result = generate({"--interactive", "--temperature=0", "--tokens=5"},
                                  "the king\n/history\nsaid\n/history\n/new\n/history\n");
  ASSERT_EQ(result.status, 0) << result.err;
  std::string first = generate({"--prompt=the king", "--temperature=0", "--tokens=5"}).out;  // ends with a line's end
  std::string second = generate({"--prompt=" + first + "said", "--temperature=0", "--tokens=5"}).out;
  EXPECT_EQ(result.out, first.substr(8) + first + second.substr(first.size() + 4) + second + "\n");
}

TEST_F(GenerateCommand, SettingsChangeBetweenLines) {
  ProgramResult result = generate({"--interactive", "--temperature=0", "--tokens=5"},
                                  "/set tokens=1\nthe king\n/again\n/set device=cuda\n/again\n/what\n");
  ASSERT_EQ(result.status, 0) << result.err;
  std::string one = generate({"--prompt=the king", "--temperature=0", "--tokens=1"}).out.substr(8);
  EXPECT_EQ(result.out, one + one + one);
  EXPECT_NE(result.err.find("error: [/set] expected tokens, "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("/history          the text so far"), std::string::npos) << result.err;
}

// Neither what the machine can do is measured for it nor any file kept in memory, the optimizer's of 50 MB among them.
TEST(GenerateProgram, TakesLittleMoreMemoryThanTheWeights) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  std::vector<std::string> larger = {"--model.width=512", "--train.steps=1"};
  ASSERT_EQ(run_program(folder.path(), test::tiny_arguments("train", larger)).status, 0);
  ProgramResult result = run_program(folder.path(), {"generate", "run", "--tokens=20", "--device=cpu"});
  EXPECT_EQ(result.status, 0) << result.err;
  constexpr int64_t kWeights = 26'000'000, kProgram = 64'000'000;
  EXPECT_LT(result.peak_bytes, kWeights + kProgram);
}

}  // namespace
}  // namespace tokamak
