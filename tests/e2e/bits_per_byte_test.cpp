// Bits per byte of data that does not tell its bytes, through `train` and `eval`.
#include <gtest/gtest.h>

#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

constexpr const char* kMissing = "no bits per byte: without a tokenizer the text of ";

class BitsPerByte : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  /// What a command says; it must end well.
  std::string run(const std::vector<std::string>& arguments) {
    ProgramResult result = run_program(folder_.path(), arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }

  /// A run on files of tokens up to this step.
  std::string train(const char* steps, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--data.path=data/train_000000.bin", "--data.val_path=data/val_000000.bin",
                             "--model.vocab=301", "--train.eval_every=2", std::string("--train.steps=") + steps});
    return run(test::tiny_arguments("train", more));
  }

  static int count(const std::string& text, const std::string& piece) {
    int found = 0;
    for (size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1)) ++found;
    return found;
  }

  TemporaryFolder folder_;
};

TEST_F(BitsPerByte, TokensNeedTheirTokenizer) {
  std::string without = train("4");
  EXPECT_EQ(count(without, kMissing), 1) << without;  // of two validations
  EXPECT_EQ(count(without, "name the one that made it (--data.tokenizer"), 1) << without;
  EXPECT_EQ(count(without, " bits per byte\n"), 0) << without;
  EXPECT_EQ(count(run({"eval", "run"}), kMissing), 1);
  EXPECT_EQ(count(run({"eval", "run", "--tokenizer=data"}), "  bits per byte "), 1);
  // The run that began without it goes on with it.
  std::string with = train("6", {"--data.tokenizer=data"});
  EXPECT_EQ(count(with, "no bits per byte"), 0) << with;
  EXPECT_EQ(count(with, " bits per byte\n"), 1) << with;
}

TEST_F(BitsPerByte, OtherDataGoesByTheTokenizerOfTheRun) {
  run(test::tiny_arguments("train", {"--data.path=data", "--train.steps=2"}));
  for (const char* data : {"data", "data/val_000000.bin", "text.txt"}) {
    std::string out = run({"eval", "run", std::string("--data=") + data});
    EXPECT_EQ(count(out, "  bits per byte "), 1) << out;
  }
}

}  // namespace
}  // namespace tokamak
