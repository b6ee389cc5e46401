#include "backend/agreement.h"

#include "backend/ranks/inprocess.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>

namespace tokamak {
namespace {

using FactsOf = std::function<std::vector<Fact>(int rank)>;

// What all ranks say, which must be one text.
std::string disagreement(int ranks, const FactsOf& facts) {
  std::mutex mutex;
  std::set<std::string> said;
  run_ranks(ranks, [&](Communicator& world) {
    std::string what;
    try {
      require_agreement(world, facts(world.rank()));
    } catch (const UserError& error) {
      what = error.what();
    }
    std::lock_guard lock(mutex);
    said.insert(what);
  });
  EXPECT_EQ(said.size(), 1u);
  return *said.begin();
}

void expect_all(const std::string& text, std::initializer_list<std::string> pieces) {
  for (const std::string& piece : pieces) EXPECT_NE(text.find(piece), text.npos) << text << "\nlacks " << piece;
}

TEST(Agreement, IsSilentWhereRanksAgree) {
  EXPECT_EQ(disagreement(4, [](int) { return std::vector<Fact>{{"program", "1.2"}, {"configuration", "a\nb"}}; }), "");
  EXPECT_EQ(disagreement(1, [](int) { return std::vector<Fact>{{"program", "1.2"}}; }), "");
}

TEST(Agreement, NamesTheRankThatDiffersAndInWhat) {
  std::string text = disagreement(4, [](int rank) {
    return std::vector<Fact>{
        {"program", "1.2"},
        {"configuration", "train.batch=4\nseed=" + std::string(rank == 2 ? "8" : "7") + "\nmodel.width=64"}};
  });
  expect_all(text, {"[ranks] expected the same configuration", "'seed=8' on rank 2 on ", "'seed=7' on the others"});
  EXPECT_EQ(text.find("width"), text.npos) << text;
}

// Rank 0 is no better than others.
TEST(Agreement, MostRanksAreTheRule) {
  expect_all(disagreement(3,
                          [](int rank) {
                            return std::vector<Fact>{{"data", rank == 0 ? "x" : "y"}};
                          }),
             {"the same data", "'x' on rank 0 on ", "'y' on the others"});
  expect_all(disagreement(2,
                          [](int rank) {
                            return std::vector<Fact>{{"data", rank == 0 ? "x" : "y"}};
                          }),
             {"'y' on rank 1 on ", "'x' on the others"});
}

TEST(Agreement, AFactThatOneRankLacks) {
  expect_all(disagreement(3,
                          [](int rank) {
                            return rank == 1 ? std::vector<Fact>{} : std::vector<Fact>{{"tuning", "t"}};
                          }),
             {"the same tuning", "'nothing' on rank 1"});
}

TEST(Agreement, LongLinesAreCutAroundTheDifference) {
  std::string text = disagreement(3, [](int rank) {
    return std::vector<Fact>{{"plan", std::string(5000, 'a') + (rank == 1 ? "X" : "Y") + std::string(5000, 'b')}};
  });
  expect_all(text, {"aaaXbbb", "aaaYbbb"});
  EXPECT_LT(text.size(), 500u);
}

TEST(Agreement, AllAdoptWhatOneRankHasDecided) {
  run_ranks(3, [](Communicator& world) {
    EXPECT_EQ(adopt(world, "of " + std::to_string(world.rank())), "of 0");
    EXPECT_EQ(adopt(world, "of " + std::to_string(world.rank()), 2), "of 2");
  });
}

}  // namespace
}  // namespace tokamak
