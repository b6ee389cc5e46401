#include "data/check_targets.h"

#include <gtest/gtest.h>

#include "data/batch_maker.h"
#include "data/document_starts.h"
#include "data/token_dataset.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

/// Windows of one token after the other.
class Counting : public Dataset {
 public:
  Counting(std::vector<int32_t> tokens) : tokens_(std::move(tokens)) {}
  const std::string& path() const override { return path_; }
  const char* kind() const override { return "test"; }
  int64_t windows() const override { return int64_t(tokens_.size()) / kContext; }
  DatasetFacts facts() const override { return {}; }
  std::vector<FileFingerprint> fingerprints() const override { return {}; }
  std::unique_ptr<WindowReader> reader() const override { return std::make_unique<Reader>(tokens_); }

  static constexpr int64_t kContext = 4;

 private:
  class Reader : public WindowReader {
   public:
    explicit Reader(const std::vector<int32_t>& tokens) : tokens_(tokens) {}
    void read(int64_t window, std::span<int32_t> out) override {
      for (size_t i = 0; i < out.size(); ++i) out[i] = tokens_[(size_t(window * kContext) + i) % tokens_.size()];
    }
    std::vector<FileRange> place(int64_t) override { return {}; }

   private:
    const std::vector<int32_t>& tokens_;
  };

  std::vector<int32_t> tokens_;
  std::string path_ = "made.bin";
};

TEST(CheckTargets, NeedsOneInTheWindowsThatAreTaken) {
  Counting data({0, 0, 0, 0, 0, 0, 0, 7});
  require_targets(data, 4, 2, 0);
  require_targets(data, 4, 1, -1);
  require_targets(data, 4, 1, 5);
  expect_user_error([&] { require_targets(data, 4, 1, 0); },
                    {"made.bin", "targets that count in its first 1 windows", "data.end_of_text", "mask_documents"});
}

TEST(CheckTargets, OneInAnyEntryIsEnoughToTrain) {
  auto corpus = [](std::vector<int32_t> a, std::vector<int32_t> b) {
    return Corpus({std::make_shared<Counting>(std::move(a)), std::make_shared<Counting>(std::move(b))}, {1, 1}, 4, 1);
  };
  std::vector<int32_t> none(8), one(8);
  one[6] = 3;
  require_some_targets(corpus(none, one), 0);
  require_some_targets(corpus(none, none), -1);
  expect_user_error([&] { require_some_targets(corpus(none, none), 0); }, {"made.bin", "got none"});
  std::vector<int32_t> many(4 * 5000);  // more than is looked at
  require_some_targets(corpus(none, many), 0);
}

TEST(CheckTargets, AStepNeedsOne) {
  std::vector<Batch> batches = {{.first_sample = 6, .tokens = {0, 0}, .targets = {kNoTarget, kNoTarget}},
                                {.first_sample = 8, .tokens = {0, 0}, .targets = {kNoTarget, kNoTarget}}};
  expect_user_error([&] { require_targets(batches, 4); }, {"step 4", "sample 6", "got none"});
  batches[1].targets[0] = 5;
  require_targets(batches, 4);
}

}  // namespace
}  // namespace tokamak
