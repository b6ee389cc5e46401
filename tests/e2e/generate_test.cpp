// Text from a cache of keys and values is the text that the full forward pass gives at every position.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "graph/builder.h"
#include "model/gpt.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"
#include "train/generator.h"
#include "train/session.h"

namespace tokamak {
namespace {

// More than the generator feeds at once, so that the prompt goes in by pieces and by single tokens.
constexpr int64_t kContext = 40;

class GenerateTest : public testing::Test {
 protected:
  explicit GenerateTest(bool pad_vocab = true) {
    config_.model = {.layers = 2, .heads = 2, .width = 32, .context = kContext, .vocab = 301};
    config_.train.batch = 1;
    config_.compile.precision = Precision::kFp32;
    if (!pad_vocab) config_.compile.disable_passes = {"pad_vocab"};
    session_ = std::make_unique<Session>(config_, platform_, *backend_);
    // GPT-2's small initial weights make all logits alike; larger ones make a choice that depends on the whole text.
    for (size_t i = 0; i < session_->parameters().size(); ++i) {
      const ParameterInfo& info = session_->parameters()[i];
      std::vector<float> values = init_parameter(info, int64_t(i), 5);
      if (info.shape.size() == 2)
        for (float& value : values) value *= 10;
      session_->store().write(info.name, values.data(), int64_t(values.size()) * 4);
    }
    generator_ = std::make_unique<Generator>(config_, platform_, *backend_, session_->store());
  }

  /// The likeliest token after `window`, from the whole of it.
  int32_t next_by_full_pass(std::span<const int32_t> window) {
    auto length = int64_t(window.size());
    Program& program = full_pass(length);
    program.set_input("tokens", window.data(), length * 4);
    program.run();
    std::vector<float> logits(size_t(length * vocab_rows()));
    program.get_result("logits", logits.data(), int64_t(logits.size()) * 4);
    auto last = logits.end() - vocab_rows();
    return int32_t(std::max_element(last, last + config_.model.vocab) - last);
  }

  void expect_same_as_full_pass(int64_t prompt_length, int64_t count) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < prompt_length; ++i) tokens.push_back(int32_t((7 + i * i * 31) % 301));
    std::vector<int32_t> generated = generator_->generate(tokens, count, {.temperature = 0}, 1);
    ASSERT_EQ(int64_t(generated.size()), count);
    size_t begin = prompt_length > kContext ? size_t(prompt_length - kContext / 2) : 0;  // of what the model sees
    for (int64_t i = 0; i < count; ++i) {
      if (tokens.size() - begin > kContext) begin = tokens.size() - kContext / 2;
      ASSERT_EQ(generated[size_t(i)], next_by_full_pass(std::span(tokens).subspan(begin))) << "token " << i;
      tokens.push_back(generated[size_t(i)]);
    }
    EXPECT_GT(std::set<int32_t>(generated.begin(), generated.end()).size(), size_t(std::min<int64_t>(count, 4)) / 2);
  }

 private:
  int64_t vocab_rows() const { return session_->store().type("wte.weight").shape[0]; }

  Program& full_pass(int64_t length) {
    std::unique_ptr<Program>& program = programs_[length];
    if (program) return *program;
    ModelConfig model = config_.model;
    model.vocab = vocab_rows();
    Graph graph("full");
    GraphBuilder g(graph);
    graph.add_result("logits", gpt_logits(g, model, g.input("tokens", {DType::kI32, {1, length}}), kNoValue));
    program =
        std::make_unique<Program>(compile_inference(std::move(graph), config_, platform_).plan, *backend_, full_store_);
    copy_parameters();
    return *program;
  }

  // The full pass has a store of its own: to it the rows of padding are a vocabulary like any other.
  void copy_parameters() {
    for (const std::string& name : full_store_.names()) {
      std::vector<std::byte> bytes(size_t(num_bytes(full_store_.type(name))));
      session_->store().read(name, bytes.data(), int64_t(bytes.size()));
      full_store_.write(name, bytes.data(), int64_t(bytes.size()));
    }
  }

  RunConfig config_;
  Platform platform_ = cpu::nominal_platform();
  std::unique_ptr<Backend> backend_ = cpu::make_backend();
  std::unique_ptr<Session> session_;
  std::unique_ptr<Generator> generator_;
  TensorStore full_store_{*backend_};
  std::map<int64_t, std::unique_ptr<Program>> programs_;
};

class GenerateUnpaddedTest : public GenerateTest {
 protected:
  GenerateUnpaddedTest() : GenerateTest(false) {}
};

TEST_F(GenerateTest, OneTokenAtATime) { expect_same_as_full_pass(1, 30); }
TEST_F(GenerateTest, APromptInPieces) { expect_same_as_full_pass(35, 5); }
TEST_F(GenerateTest, APromptThatFillsTheContext) { expect_same_as_full_pass(kContext, 3); }
TEST_F(GenerateTest, TheContextOverflowsTwice) { expect_same_as_full_pass(3, 80); }
TEST_F(GenerateTest, APromptLongerThanTheContext) { expect_same_as_full_pass(kContext + 23, 30); }
TEST_F(GenerateUnpaddedTest, TheContextOverflows) { expect_same_as_full_pass(3, 50); }

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

}  // namespace
}  // namespace tokamak
