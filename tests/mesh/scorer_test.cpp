// Scores on ranks that are threads are those of one rank.
#include "evaluate/scorer.h"

#include "tests/mesh/train_steps.h"

#include <fmt/format.h>

namespace tokamak::test {
namespace {

std::vector<Continuation> questions() {
  std::vector<Continuation> all(19);
  for (size_t i = 0; i < all.size(); ++i) {
    auto random = philox4x32(3, i);
    for (uint32_t t = 0; t < 1 + random[0] % 12; ++t) all[i].context.push_back(int32_t(philox4x32(i, t)[0] % 61));
    for (uint32_t t = 0; t < 1 + random[1] % 4; ++t) all[i].tokens.push_back(int32_t(philox4x32(i, t)[1] % 61));
  }
  return all;
}

std::vector<Score> scores_of(const RunConfig& config, const MeshRanks* ranks) {
  auto backend = cpu::make_backend();
  set_num_threads(1);  // ranks share the cores
  Platform platform = cpu::nominal_platform(1);
  Session session = make_session(config, platform, *backend, 0, ranks);
  session.initialise();
  Scorer scorer(session.resolved(), platform, *backend, session.store(), {.ranks = ranks});
  return scorer.score(questions());
}

using Sizes = std::tuple<int64_t, int64_t, int64_t>;  // data, tensor, zero

class ScoresOnRanks : public testing::TestWithParam<Sizes> {};

TEST_P(ScoresOnRanks, AreThoseOfOne) {
  auto [data, tensor, zero] = GetParam();
  RunConfig config = tiny_mesh_run();
  std::vector<Score> expected = scores_of(config, nullptr);
  config.mesh = {.data = data, .tensor = tensor, .zero = zero};
  run_ranks(int(data * tensor), [&](Communicator& world) {
    MeshRanks ranks(step_mesh(config.mesh), world);
    std::vector<Score> scores = scores_of(config, &ranks);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(scores[i].log_likelihood, expected[i].log_likelihood, 1e-5) << i;
      EXPECT_EQ(scores[i].is_greedy, expected[i].is_greedy) << i;
    }
  });
}

std::string name_of(const testing::TestParamInfo<Sizes>& info) {
  auto [data, tensor, zero] = info.param;
  return fmt::format("data{}_tensor{}_zero{}", data, tensor, zero);
}

INSTANTIATE_TEST_SUITE_P(All, ScoresOnRanks,
                         testing::Values(Sizes{2, 1, 0}, Sizes{2, 1, 1}, Sizes{2, 1, 2}, Sizes{2, 1, 3}, Sizes{4, 1, 3},
                                         Sizes{1, 2, 0}, Sizes{2, 2, 2}),
                         name_of);

}  // namespace
}  // namespace tokamak::test
