// Scores of continuations against PyTorch: those that its logits give, for every family.
#include "evaluate/scorer.h"

#include "backend/cpu/cpu_backend.h"
#include "tests/model/golden.h"
#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

/// Of tokens [from, to) of a sequence, by PyTorch's logits (B, T, V) of it, in double.
Score expected_score(const std::vector<float>& logits, int64_t vocab, std::span<const int32_t> tokens, size_t from,
                     size_t to) {
  Score score;
  for (size_t t = from; t < to; ++t) {
    const float* row = logits.data() + int64_t(t - 1) * vocab;
    double sum = 0;
    for (int64_t v = 0; v < vocab; ++v) sum += std::exp(double(row[v]));
    score.log_likelihood += double(row[tokens[t]]) - std::log(sum);
    score.is_greedy = score.is_greedy && std::max_element(row, row + vocab) == row + tokens[t];
  }
  return score;
}

class ScoresOfGoldens : public testing::TestWithParam<const char*> {};

TEST_P(ScoresOfGoldens, AreThoseOfPyTorch) {
  Golden golden(GetParam());
  RunConfig config;
  config.model = golden.model();
  config.train.batch = 2;
  config.compile.precision = Precision::kFp32;
  config.threads = 2;
  Platform platform = cpu::nominal_platform(2);
  auto backend = cpu::make_backend();
  Session session = make_session(config, platform, *backend);
  for (const ParameterInfo& info : session.parameters())
    session.store().write_share(info.name, golden.floats("param." + info.name).data());
  Batch batch = golden.batch_of(0, 0, golden.batch());
  std::vector<float> logits = golden.floats("logits");
  auto context = size_t(golden.model().context);
  int64_t vocab = golden.model().vocab;
  std::vector<Continuation> asked;
  std::vector<Score> expected;
  for (size_t row = 0; row < size_t(golden.batch()); ++row) {
    std::span<const int32_t> tokens = std::span(batch.tokens).subspan(row * context, context);
    std::vector<float> own(logits.begin() + int64_t(row * context) * vocab,
                           logits.begin() + int64_t((row + 1) * context) * vocab);
    for (size_t from = 1; from < context; ++from)
      for (size_t to : {from + 1, (from + context) / 2 + 1, context}) {
        if (to > context) continue;
        asked.push_back({{tokens.begin(), tokens.begin() + int64_t(from)},
                         {tokens.begin() + int64_t(from), tokens.begin() + int64_t(to)}});
        expected.push_back(expected_score(own, vocab, tokens, from, to));
      }
    // What the model finds likeliest, so that something is greedy.
    const float* last = own.data() + int64_t(context - 1) * vocab;
    asked.push_back({{tokens.begin(), tokens.end()}, {int32_t(std::max_element(last, last + vocab) - last)}});
    std::vector<int32_t> longer(tokens.begin(), tokens.end());
    longer.push_back(asked.back().tokens[0]);
    expected.push_back(expected_score(own, vocab, longer, context, context + 1));
  }
  Scorer scorer(session.resolved(), platform, *backend, session.store());
  size_t told = 0;
  std::vector<Score> scores = scorer.score(asked, [&](size_t done) { told = done; });
  EXPECT_EQ(told, asked.size());
  ASSERT_EQ(scores.size(), expected.size());
  int64_t greedy = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i].log_likelihood, expected[i].log_likelihood, 2e-5 * double(asked[i].tokens.size())) << i;
    EXPECT_EQ(scores[i].is_greedy, expected[i].is_greedy) << i;
    greedy += scores[i].is_greedy;
  }
  EXPECT_GE(greedy, 2);
  EXPECT_LT(greedy, int64_t(scores.size()));
}

INSTANTIATE_TEST_SUITE_P(All, ScoresOfGoldens, testing::ValuesIn(kGoldens),
                         [](const auto& info) { return std::string(info.param); });

class ScorerTest : public testing::Test {
 protected:
  ScorerTest() {
    config_.model = {.layers = 2, .heads = 2, .width = 32, .context = 200, .vocab = 101};
    config_.train.batch = 3;
    config_.compile.precision = Precision::kFp32;
    config_.threads = 2;
  }

  static std::vector<Continuation> questions(size_t count) {
    std::vector<Continuation> all(count);
    for (size_t i = 0; i < count; ++i) {
      auto random = philox4x32(3, i);
      for (uint32_t t = 0; t < 1 + random[0] % 150; ++t) all[i].context.push_back(int32_t(philox4x32(i, t)[0] % 101));
      for (uint32_t t = 0; t < 1 + random[1] % 50; ++t) all[i].tokens.push_back(int32_t(philox4x32(i, t)[1] % 101));
    }
    return all;
  }

  RunConfig config_;
  Platform platform_ = cpu::nominal_platform(2);
  std::unique_ptr<Backend> backend_ = cpu::make_backend();
};

// Whatever else is in its batch, and however long that is.
TEST_F(ScorerTest, ScoresEachByItself) {
  Session session = make_session(config_, platform_, *backend_);
  session.initialise();
  std::vector<Continuation> all = questions(40);
  std::vector<Score> together = Scorer(session.resolved(), platform_, *backend_, session.store()).score(all);
  Scorer alone(session.resolved(), platform_, *backend_, session.store());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_NEAR(alone.score(std::span(all).subspan(i, 1))[0].log_likelihood, together[i].log_likelihood, 1e-4) << i;
}

TEST_F(ScorerTest, LivesInTheMemoryThatItIsLent) {
  Session session = make_session(config_, platform_, *backend_);
  session.initialise();
  std::vector<Continuation> all = questions(10);
  std::vector<Score> expected = Scorer(session.resolved(), platform_, *backend_, session.store()).score(all);
  constexpr int64_t kLent = 4 << 20;
  std::shared_ptr<Memory> arena = backend_->allocate(kLent);
  Scorer scorer(session.resolved(), platform_, *backend_, session.store(), {.arena = arena, .arena_bytes = kLent});
  std::vector<Score> scores = scorer.score(all);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(scores[i].log_likelihood, expected[i].log_likelihood, 1e-4);
}

TEST_F(ScorerTest, WhatProgressThrowsEndsIt) {
  Session session = make_session(config_, platform_, *backend_);
  session.initialise();
  Scorer scorer(session.resolved(), platform_, *backend_, session.store());
  std::vector<Continuation> all = questions(40);
  EXPECT_THROW(scorer.score(all, [](size_t) { throw std::runtime_error("stop"); }), std::runtime_error);
  EXPECT_EQ(scorer.score(all).size(), all.size());
}

TEST_F(ScorerTest, RefusesMeshesThatItCannotUse) {
  config_.model.layers = 4;
  config_.mesh.pipe = 2;
  expect_user_error([&] { require_scorable(resolve(config_, {})); }, {"got mesh.pipe = 2"});
  config_.mesh = {.context = 2};
  expect_user_error([&] { require_scorable(resolve(config_, {})); }, {"got mesh.context = 2"});
}

}  // namespace
}  // namespace tokamak::test
