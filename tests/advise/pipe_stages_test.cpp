#include "advise/pipe_stages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compile/pipe_compiler.h"

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

struct Case {
  const char* schedule;
  int64_t stages, interleave, micro_batches;
};
const Case kCases[] = {
    {"1f1b", 2, 1, 1},        {"1f1b", 4, 1, 16},        {"1f1b", 5, 1, 3},         {"gpipe", 4, 1, 30},
    {"zero_bubble", 4, 1, 2}, {"zero_bubble", 6, 1, 40}, {"interleaved", 2, 2, 2},  {"interleaved", 4, 2, 32},
    {"interleaved", 3, 2, 6}, {"interleaved", 6, 2, 12}, {"interleaved", 4, 3, 60}, {"zero_bubble", 2, 1, 8},
    {"zero_bubble", 2, 1, 1}, {"interleaved", 8, 4, 32}, {"interleaved", 5, 2, 5},
};

// Chunks of three sizes, the last of which does more.
std::vector<ChunkSeconds> chunks_of(int64_t count) {
  std::vector<ChunkSeconds> chunks;
  for (int64_t chunk = 0; chunk < count; ++chunk) {
    double blocks = double(1 + chunk % 3), more = chunk + 1 == count ? 1.5 : 0;
    chunks.push_back({blocks, 2.25 * blocks + more, 1.25 * blocks + more, blocks});
  }
  return chunks;
}

TEST(PipeStages, SecondsAreThoseOfTheSimulation) {
  constexpr double kTransfer = 0.125;
  for (const Case& c : kCases) {
    MeshConfig mesh{.pipe = c.stages, .schedule = c.schedule, .interleave = c.interleave};
    PipeSchedule schedule = make_pipe_schedule(c.schedule, c.stages, c.interleave, c.micro_batches);
    std::vector<ChunkSeconds> chunks = chunks_of(schedule.chunks);
    double closed = pipe_seconds(mesh, c.micro_batches, chunks, kTransfer),
           simulated = simulate_pipe(schedule, chunks, kTransfer).seconds;
    double least = least_pipe_seconds(mesh, c.micro_batches, chunks);
    EXPECT_LE(least, simulated);
    EXPECT_GE(least, 0.6 * simulated);
    EXPECT_NEAR(closed / simulated, 1, 1e-9)
        << fmt::format("{} {} x {}, {}", c.schedule, c.stages, c.interleave, c.micro_batches);
  }
}

// Else a pipeline that is faster than another would be passed over for it.
TEST(PipeStages, NoPipelineTakesLessThanTheLeast) {
  for (const char* schedule : {"1f1b", "gpipe", "zero_bubble"})
    for (int64_t stages = 2; stages <= 6; ++stages)
      for (int64_t micro_batches : {1, 2, 3, 4, 5, 8, 17})
        for (double weight : {0.0, 0.5, 1.0, 3.0}) {
          MeshConfig mesh{.pipe = stages, .schedule = schedule};
          std::vector<ChunkSeconds> chunks(size_t(stages), ChunkSeconds{1, 1.5 + weight, 1.5, weight});
          EXPECT_LE(least_pipe_seconds(mesh, micro_batches, chunks),
                    (1 + 1e-9) * pipe_seconds(mesh, micro_batches, chunks, 0))
              << fmt::format("{} {}, {}, {}", schedule, stages, micro_batches, weight);
        }
}

TEST(PipeStages, MicroBatchesInFlightAreSlotsOfTheSchedule) {
  for (const Case& c : kCases) {
    MeshConfig mesh{.pipe = c.stages, .schedule = c.schedule, .interleave = c.interleave};
    PipeSchedule schedule = make_pipe_schedule(c.schedule, c.stages, c.interleave, c.micro_batches);
    for (int64_t stage = 0; stage < c.stages; ++stage) {
      std::vector<int64_t> slots;
      for (int64_t chunk = stage; chunk < schedule.chunks; chunk += c.stages)
        slots.push_back(
            schedule.slots(stage, {Kind::kForward, chunk},
                           {schedule.splits_backward(chunk) ? Kind::kBackwardInput : Kind::kBackward, chunk}));
      EXPECT_EQ(micro_batches_in_flight(mesh, c.micro_batches, stage), slots)
          << fmt::format("{} {} x {}, {}: {}", c.schedule, c.stages, c.interleave, c.micro_batches, stage);
    }
  }
}

TEST(PipeStages, NoOtherDivisionIsFaster) {
  for (int64_t blocks : {12, 32, 48})
    for (int64_t chunks : {1, 2, 5, 8, 12})
      for (double embedding : {0.0, 0.25})
        for (double head : {0.0, 0.5, 1.0, 1.75, 4.0}) {
          std::vector<double> seconds(size_t(blocks), 1);
          seconds.front() += embedding;
          seconds.back() += head;
          std::vector<int64_t> borders = balance_blocks(seconds, chunks), expected;
          for (size_t i = 1; i < borders.size(); ++i) expected.push_back(borders[i] - borders[i - 1]);
          EXPECT_EQ(blocks_of_chunks(blocks, chunks, {1, embedding, head}), expected)
              << fmt::format("{} blocks, {} chunks, {}, {}", blocks, chunks, embedding, head);
        }
}

}  // namespace
}  // namespace tokamak
