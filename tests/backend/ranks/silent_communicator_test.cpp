#include "backend/silent_communicator.h"

#include <gtest/gtest.h>

#include <array>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"

namespace tokamak {
namespace {

// Rank 1 of three alone: whoever waited for others would never end.
TEST(SilentCommunicator, HearsItselfAndWaitsForNobody) {
  run_ranks(3, [](Communicator& world) {
    if (world.rank() != 1) return;
    std::unique_ptr<Backend> cpu = cpu::make_backend();
    std::unique_ptr<Communicator> silent = make_silent(world, *cpu);
    EXPECT_EQ(silent->rank(), 1);
    EXPECT_EQ(silent->size(), 3);
    std::array<float, 3> from = {1, 2, 3}, to = {4, 5, 6};
    silent->recv(to.data(), 3, DType::kF32, 0);
    silent->barrier();
    EXPECT_EQ(to, (std::array<float, 3>{4, 5, 6}));
    silent->reduce_scatter(from.data(), to.data(), 1, DType::kF32, Reduction::kSum);
    EXPECT_EQ(to, (std::array<float, 3>{2, 5, 6})) << "its own piece";
    silent->all_gather(from.data(), to.data(), 1, DType::kF32);
    EXPECT_EQ(to, (std::array<float, 3>{1, 1, 1}));
    silent->all_to_all(from.data(), to.data(), 1, DType::kF32);
    EXPECT_EQ(to, from);
    silent->all_reduce(from.data(), from.data(), 3, DType::kF32, Reduction::kSum);
    EXPECT_EQ(to, from);
    EXPECT_EQ(silent->exchange("a"), std::vector<std::string>(3, "a"));
    std::array<int64_t, 2> members = {1, 2};
    std::unique_ptr<Communicator> part = silent->split("data", members);
    EXPECT_EQ(part->rank(), 0);
    EXPECT_EQ(part->size(), 2);
    part->barrier();
  });
}

}  // namespace
}  // namespace tokamak
