// Steps whose samples hold several documents: what a step's mean is taken over, and nothing to learn from.
#include <gtest/gtest.h>

#include <array>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "data/document_starts.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

constexpr int32_t kEnd = 5;

RunConfig config_of(int64_t batch, bool mask = true) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 16, .context = 24, .vocab = 31};
  config.train.batch = batch;
  config.train.total_batch = 4 * 24;
  config.compile.precision = Precision::kFp32;
  config.data.mask_documents = mask;
  return config;
}

// Samples of very different numbers of documents, so that means of means would be wrong.
Batch four_samples(const RunConfig& config) {
  RunConfig four = config;
  four.train.batch = 4;
  Batch batch = random_batch(four, 1);
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    int32_t every = int32_t(std::array{2, 3, 11, 100}[i / 24]);
    batch.tokens[i] = int32_t(i % 24) % every == every - 1 ? kEnd : batch.tokens[i] == kEnd ? 0 : batch.tokens[i];
  }
  batch.documents = document_starts(batch.tokens, 24, kEnd);
  hide_first_tokens(batch.tokens, kEnd, batch.targets);
  return batch;
}

std::vector<Batch> cut(const Batch& all, int64_t size) {
  std::vector<Batch> parts;
  auto part = [&](const std::vector<int32_t>& x, int64_t sample) {
    return std::vector<int32_t>(x.begin() + sample * 24, x.begin() + (sample + size) * 24);
  };
  for (int64_t s = 0; s < 4; s += size)
    parts.push_back({s, part(all.tokens, s), part(all.targets, s), part(all.documents, s)});
  return parts;
}

std::vector<StepResult> run(const RunConfig& config, const std::vector<Batch>& batches, int64_t steps = 4) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  session.initialise();
  std::vector<StepResult> results;
  for (int64_t step = 0; step < steps; ++step) results.push_back(session.run_step(batches, step, 1e-2));
  return results;
}

TEST(MaskedStep, MeanIsOverTheTargetsOfAllMicroBatches) {
  RunConfig whole = config_of(4);
  Batch batch = four_samples(whole);
  std::vector<StepResult> expected = run(whole, {batch});
  for (int64_t size : {1, 2}) {
    std::vector<StepResult> got = run(config_of(size), cut(batch, size));
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].loss, expected[i].loss, 1e-5 * expected[i].loss) << "step " << i;
      EXPECT_NEAR(got[i].grad_norm, expected[i].grad_norm, 1e-4 * expected[i].grad_norm) << "step " << i;
    }
  }
}

TEST(MaskedStep, OneDocumentIsAsWithoutMask) {
  RunConfig off = config_of(2, false), on = config_of(2);
  std::vector<Batch> plain, masked;
  for (uint64_t i : {0, 1}) {
    plain.push_back(random_batch(off, i));
    masked.push_back(random_batch(on, i));
  }
  EXPECT_TRUE(plain[0].documents.empty());
  std::vector<StepResult> expected = run(off, plain), got = run(on, masked);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i].loss, expected[i].loss, 1e-5 * expected[i].loss) << "step " << i;
    EXPECT_NEAR(got[i].grad_norm, expected[i].grad_norm, 1e-4 * expected[i].grad_norm) << "step " << i;
  }
}

TEST(MaskedStep, NothingButSeparatorsTeachesNothing) {
  RunConfig config = config_of(4);
  Batch batch = random_batch(config, 1);
  std::fill(batch.tokens.begin(), batch.tokens.end(), kEnd);
  batch.documents = document_starts(batch.tokens, 24, kEnd);
  hide_first_tokens(batch.tokens, kEnd, batch.targets);
  for (const StepResult& result : run(config, {batch})) {
    EXPECT_EQ(result.loss, 0);
    EXPECT_EQ(result.grad_norm, 0);
  }
}

TEST(MaskedStep, EvaluatesTheMeanOverWhatCounts) {
  RunConfig config = config_of(4);
  Batch batch = four_samples(config);
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  session.initialise();
  double loss = session.evaluate({&batch, 1}).at(0);
  EXPECT_NEAR(loss, session.run_step({&batch, 1}, 0, 0).loss, 1e-5);
}

TEST(MaskedStep, NeedsToKnowWhereDocumentsBegin) {
  RunConfig config = config_of(4);
  Batch batch = four_samples(config);
  batch.documents.clear();
  EXPECT_ANY_THROW(run(config, {batch}));
}

}  // namespace
}  // namespace tokamak
