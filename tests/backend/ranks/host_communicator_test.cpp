#include "backend/ranks/host_communicator.h"

#include "backend/ranks/inprocess.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tokamak::test {
namespace {

// One of two ranks; the other one says what it hears.
class Echo : public HostCommunicator {
 public:
  Echo() : HostCommunicator({"data", {0, 1}, 0}) {}
  void abort(std::string_view) override {}
  void check() override {}

  std::vector<size_t> transfers;  // calls that each was for

 protected:
  void transfer(const Meetings& meetings) override {
    transfers.push_back(calls().size());
    const Meeting& meeting = meetings.at(1);
    for (size_t i = 0; i < meeting.in.size(); ++i)
      std::memcpy(meeting.in[i].data, meeting.out[i].data, size_t(meeting.in[i].bytes));
  }
  std::unique_ptr<Communicator> do_split(Membership) override { return nullptr; }
};

TEST(HostCommunicator, SmallTensorsOfAGroupTravelTogether) {
  Echo world;
  std::vector<float> x(100, 3.0f), gathered(200), sums(100);
  auto calls = [&] {
    for (int i = 0; i < 7; ++i) world.all_gather(x.data(), gathered.data(), 100, DType::kF32);
    world.reduce_scatter(gathered.data(), sums.data(), 100, DType::kF32, Reduction::kSum);
  };
  calls();
  EXPECT_EQ(world.transfers, std::vector<size_t>(8, 1));
  world.transfers.clear();
  world.group(calls);
  EXPECT_EQ(world.transfers, std::vector<size_t>{8});
  EXPECT_EQ(gathered, std::vector<float>(200, 3.0f));
}

// Large ones gain nothing by it, and their scratch memory would be needed at once.
TEST(HostCommunicator, LargeTensorsOfAGroupTravelAlone) {
  Echo world;
  std::vector<float> large(1 << 18, 1.0f), small(1 << 16, 1.0f), to(1 << 19);
  world.group([&] {
    world.all_gather(small.data(), to.data(), 100, DType::kF32);
    world.all_gather(large.data(), to.data(), 1 << 18, DType::kF32);
    for (int i = 0; i < 3; ++i) world.all_gather(small.data(), to.data(), 1 << 16, DType::kF32);
  });
  EXPECT_EQ(world.transfers, (std::vector<size_t>{1, 3, 1}));
}

TEST(HostCommunicator, CallsThatFollowAGroupDoNotWait) {
  Echo world;
  std::vector<float> x(4, 1.0f), to(8);
  EXPECT_THROW(world.group([&] {
    world.all_gather(x.data(), to.data(), 4, DType::kF32);
    throw CommunicationError("a call failed");
  }),
               CommunicationError);
  world.all_gather(x.data(), to.data(), 4, DType::kF32);
  EXPECT_EQ(world.transfers, std::vector<size_t>{1});
}

TEST(HostCommunicator, GroupsThatDifferAreNoticed) {
  auto group_of = [](Communicator& world, int calls) {
    std::vector<float> x(4), to(8);
    world.group([&] {
      for (int i = 0; i < calls; ++i) world.all_gather(x.data(), to.data(), 4, DType::kF32);
    });
  };
  try {
    run_ranks(2, [&](Communicator& world) { group_of(world, 2 + world.rank()); });
    ADD_FAILURE() << "nothing was noticed";
  } catch (const CommunicationError& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("all_gather(f32[4]) on rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("no more than 2 calls on rank 0"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tokamak::test
