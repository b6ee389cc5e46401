// Training with data.mask_documents from prepared files to checkpoints.
#include <gtest/gtest.h>

#include "tests/e2e/finished_run.h"
#include "tests/e2e/small_run.h"

namespace tokamak {
namespace {

class DocumentMaskRun : public test::SmallRun {
 protected:
  static constexpr int64_t kSteps = 12;

  // Many files, each a document shorter than a sample.
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "text");
    for (uint64_t i = 0; i < 120; ++i)
      write_file_quickly(folder_ / "text" / (std::to_string(100 + i) + ".txt"), test::tiny_text(20 + i % 20, i));
    PrepareOptions options;
    options.inputs = {(folder_ / "text").string()};
    options.out = folder_ / "data";
    options.vocab_size = 301;
    prepare(options);
  }

  RunConfig config(const std::string& out, bool mask) const {
    RunConfig config = SmallRun::config(out);
    config.train.steps = kSteps;
    config.train.eval_every = 6;
    config.train.eval_batches = 1;
    config.train.total_batch = 2 * config.train.batch * config.model.context;
    config.data.mask_documents = mask;
    return config;
  }
};

TEST_F(DocumentMaskRun, IsAnotherRunThanWithout) {
  TrainSummary masked = run(config("masked", true)), plain = run(config("plain", false));
  ASSERT_TRUE(masked.val_loss && plain.val_loss);
  EXPECT_NE(*masked.val_loss, *plain.val_loss);
  auto with = test::read_run(folder_ / "masked", kSteps).steps,
       without = test::read_run(folder_ / "plain", kSteps).steps;
  EXPECT_NE(with.front().loss, without.front().loss);
  EXPECT_LT(with.back().loss, with.front().loss);
}

TEST_F(DocumentMaskRun, ResumesBitForBit) {
  run(config("straight", true));
  run(config("broken", true), 5);
  run(config("broken", true));
  test::expect_same(test::read_run(folder_ / "straight", kSteps), test::read_run(folder_ / "broken", kSteps));
}

}  // namespace
}  // namespace tokamak
