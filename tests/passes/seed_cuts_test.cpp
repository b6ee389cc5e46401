#include "passes/seed_cuts.h"

#include "config/mesh_config.h"
#include "passes/step_mesh.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr const char* kArguments = R"(graph g {
  input tokens = %0 : i32[8,16]
  input rng = %1 : i32[2]
  param wte = %2 {global=[30,8], role="embedding"} : f32[32,8]
  param wpe = %3 {role="position"} : f32[16,8]
  param qkv = %4 {blocks=3, role="column"} : f32[8,24]
  param qkv.bias = %5 {blocks=3, role="column_bias"} : f32[24]
  param proj = %6 {role="row"} : f32[8,8]
  param gain = %7 : f32[9]
  state m.qkv = %8 {blocks=3, of="qkv", role="moment"} : f32[8,24]
  state grad.qkv = %9 {blocks=3, of="qkv", role="gradient_sum"} : f32[8,24]
  state m.gain = %10 {of="gain", role="moment"} : f32[9]
  state step = %11 : f32[]
})";

// Of all arguments that are cut: "name: cuts".
std::vector<std::string> seeds(const MeshConfig& mesh, bool gathers_once = false,
                               std::function<bool(const Argument&)> updates_whole = {}, const char* text = kArguments) {
  Graph graph = test::parse(text);
  std::vector<std::string> lines;
  PassContext context;
  context.mesh = step_mesh(mesh);
  context.zero = mesh.zero;
  context.gathers_once = gathers_once;
  context.slots = std::max<int64_t>(mesh.slots, 1);
  context.updates_whole = std::move(updates_whole);
  for (const auto& [value, cuts] : seed_cuts(graph, context)) {
    EXPECT_TRUE(can_cut(graph.shape(value), cuts));
    lines.push_back(graph.argument_of(value)->name + ": " + print_cuts(cuts));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(SeedCuts, OneRankHasAll) { EXPECT_EQ(seeds({}), Lines{}); }

TEST(SeedCuts, OfTheBatchAreOverDataAndContext) {
  EXPECT_EQ(seeds({.data = 2, .context = 4}), (Lines{"tokens: data:2@0 context:4@1x2m", "grad.qkv: data:2+"}));
}

TEST(SeedCuts, OfMatricesFollowFromTheirRoles) {
  EXPECT_EQ(seeds({.tensor = 4}), (Lines{"wte: tensor:4@0", "qkv: tensor:4@1x3", "qkv.bias: tensor:4@0x3",
                                         "proj: tensor:4@0", "m.qkv: tensor:4@1x3", "grad.qkv: tensor:4@1x3"}));
}

// As blocks have it: of the batch where its parts suffice, else of the time.
TEST(SeedCuts, OfWhatStagesGiveEachOtherAreOverTensorToo) {
  auto stream = [](const MeshConfig& mesh, const std::string& shape) {
    Graph graph = test::parse("graph g {\n state stream.1 = %0 {role=\"residual\"} : f32" + shape + "\n}");
    PassContext context;
    context.mesh = step_mesh(mesh);
    context.sequence = mesh.sequence;
    auto cuts = seed_cuts(graph, context);
    return cuts.empty() ? "" : print_cuts(cuts.begin()->second);
  };
  EXPECT_EQ(stream({.data = 2, .tensor = 2}, "[8,16,4]"), "data:2@0 tensor:2@0x2");
  EXPECT_EQ(stream({.data = 2, .tensor = 2}, "[2,16,4]"), "data:2@0 tensor:2@1");
  EXPECT_EQ(stream({.context = 2, .tensor = 2}, "[1,16,4]"), "context:2@1x2m tensor:2@1x4");
  EXPECT_EQ(stream({.data = 1, .tensor = 3}, "[1,16,4]"), "") << "3 ranks divide neither";
  EXPECT_EQ(stream({.data = 2, .tensor = 2, .sequence = false}, "[8,16,4]"), "data:2@0");
}

TEST(SeedCuts, OfZeroGrowWithItsStage) {
  Lines one = {"tokens: data:2@0", "m.qkv: data:2@0", "grad.qkv: data:2+"};
  EXPECT_EQ(seeds({.data = 2, .zero = 1}), one);
  EXPECT_EQ(seeds({.data = 2, .zero = 2}), (Lines{"tokens: data:2@0", "m.qkv: data:2@0", "grad.qkv: data:2@0"}));
  EXPECT_EQ(seeds({.data = 2, .zero = 3}),
            (Lines{"tokens: data:2@0", "wte: data:2@0", "wpe: data:2@0", "qkv: data:2@0", "qkv.bias: data:2@0",
                   "proj: data:2@0", "m.qkv: data:2@0", "grad.qkv: data:2@0"}))
      << "9 numbers are not divided by 2: gain stays whole";
  EXPECT_EQ(seeds({.data = 2, .zero = 2}, true), seeds({.data = 2, .zero = 3})) << "parameters that are gathered once";
}

// A gradient that ranks have added up lies as what the optimizer keeps, so that its update needs nothing of others.
TEST(SeedCuts, OfReducedGradientsAreThoseOfMoments) {
  constexpr const char* kReduced = R"(graph g {
    param qkv = %0 {blocks=3, role="column"} : f32[8,24]
    state reduced.qkv = %1 {blocks=3, of="qkv", role="reduced_gradient"} : f32[8,24]
  })";
  EXPECT_EQ(seeds({.data = 2, .zero = 0}, false, {}, kReduced), Lines{});
  EXPECT_EQ(seeds({.data = 2, .zero = 1}, false, {}, kReduced), (Lines{"reduced.qkv: data:2@0"}));
  EXPECT_EQ(seeds(
                {.data = 2, .zero = 1}, false, [](const Argument&) { return true; }, kReduced),
            Lines{})
      << "an update that reads all of the parameter";
}

// States that have a number, or several as one dim more, of each piece of a row: cuts fall between pieces.
TEST(SeedCuts, OfPiecesOfRowsAreThoseOfTheirParameter) {
  constexpr const char* kPieces = R"(graph g {
    param fc = %0 {role="column"} : f32[6,32]
    param qkv = %1 {blocks=3, role="column"} : f32[6,24]
    state codes.fc = %2 {of="fc", role="moment"} : u8[6,4,8]
    state scales.fc = %3 {of="fc", role="moment"} : f32[6,4]
    state codes.qkv = %4 {of="qkv", role="moment"} : u8[6,3,8]
    state scales.qkv = %5 {of="qkv", role="moment"} : f32[6,3]
    state outputs.qkv = %6 {of="qkv", role="moment"} : f32[24]
  })";
  EXPECT_EQ(seeds({.tensor = 2}, false, {}, kPieces),
            (Lines{"fc: tensor:2@1", "qkv: tensor:2@1x3", "codes.fc: tensor:2@1", "scales.fc: tensor:2@1"}));
  EXPECT_EQ(seeds({.data = 4, .zero = 1}, false, {}, kPieces), (Lines{"codes.fc: data:4@1", "scales.fc: data:4@1"}))
      << "4 ranks divide neither 6 rows nor 3 pieces, and no piece; what there is of outputs is whole";
  EXPECT_EQ(seeds({.data = 2, .tensor = 2, .zero = 1}, false, {}, kPieces),
            (Lines{"fc: tensor:2@1", "qkv: tensor:2@1x3", "codes.fc: tensor:2@1 data:2@0",
                   "scales.fc: tensor:2@1 data:2@0", "codes.qkv: data:2@0", "scales.qkv: data:2@0"}));
}

// A parameter that is updated from all of it stays whole, with its states; other axes cut it as before.
TEST(SeedCuts, ZeroLeavesWholeWhatTheUpdateReadsWhole) {
  auto qkv = [](const Argument& parameter) { return parameter.name == "qkv"; };
  for (int64_t zero : {1, 2, 3}) {
    Lines lines = seeds({.data = 2, .zero = zero}, false, qkv), others = seeds({.data = 2, .zero = zero});
    std::erase_if(others, [](const std::string& line) {
      return line.starts_with("qkv: ") || line.starts_with("m.qkv") || line.starts_with("grad.qkv");
    });
    others.emplace_back("grad.qkv: data:2+");
    EXPECT_EQ(lines, others);
  }
  EXPECT_EQ(seeds({.data = 2, .tensor = 4, .zero = 2}, false, qkv)[5], "m.qkv: tensor:4@1x3");
}

// A state of another shape than its parameter's is not cut as that is, and what there is of rows or columns not at all.
TEST(SeedCuts, StatesOfOtherShapesAreNotCutAsTheirParameters) {
  constexpr const char* kStates = R"(graph g {
    param proj = %0 {role="row"} : f32[8,4]
    state m.proj = %1 {of="proj", role="moment"} : bf16[8,4]
    state columns.proj = %2 {of="proj", role="moment"} : f32[4]
  })";
  EXPECT_EQ(seeds({.data = 2, .tensor = 4, .zero = 1}, false, {}, kStates),
            (Lines{"proj: tensor:4@0", "m.proj: tensor:4@0 data:2@0x4"}));
}

TEST(SeedCuts, SumsOfGradientsAreTermsWhereTheUpdateAddsThem) {
  EXPECT_EQ(seeds({.data = 2, .tensor = 2, .zero = 1})[6], "grad.qkv: tensor:2@1x3 data:2+");
  EXPECT_EQ(seeds({.data = 2, .zero = 1, .slots = 4}), (Lines{"tokens: data:2@0", "m.qkv: data:2@0"}))
      << "slots have an order";
}

TEST(SeedCuts, OfZeroLieWithinThoseOfTheOtherAxes) {
  EXPECT_EQ(seeds({.data = 2, .context = 2, .tensor = 4, .zero = 3})[1], "wte: tensor:4@0 data:2@0x4 context:2@0x8");
  EXPECT_EQ(seeds({.data = 4, .tensor = 4, .zero = 3})[5], "proj: tensor:4@0 data:4@1")
      << "8 rows have no 16 parts, so the columns are cut";
  EXPECT_EQ(seeds({.data = 4, .tensor = 4, .zero = 3, .slots = 4})[5], "proj: tensor:4@0")
      << "with slots, whose sums have an order, rows alone are";
}

// Between matrices over tensor, the stream is cut along the batch or, where that is too small, along time: within each
// of the two pieces that a rank of context has.
TEST(SeedStream, IsCutAlongTimeWithinThePiecesOfContext) {
  auto cuts = [](int64_t batch, const MeshConfig& mesh) {
    std::string size = std::to_string(batch);
    Graph graph = test::parse("graph g {\n  input x = %0 : f32[" + size + R"(,16,8]
      param proj = %1 {role="row"} : f32[8,8]
      %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[)" +
                              size + R"(,16,8]
      result y = %2
    })");
    std::map<ValueId, std::vector<Cut>> cuts = seed_residual(graph, step_mesh(mesh), false);
    return cuts.empty() ? "" : print_cuts(cuts.at(graph.nodes()[0].outputs[0]));
  };
  EXPECT_EQ(cuts(1, {}), "");
  EXPECT_EQ(cuts(1, {.tensor = 2}), "tensor:2@1");
  EXPECT_EQ(cuts(1, {.context = 2, .tensor = 2}), "tensor:2@1x4");
  EXPECT_EQ(cuts(2, {.context = 2, .tensor = 2}), "tensor:2@0");
  EXPECT_EQ(cuts(2, {.data = 2, .tensor = 2}), "tensor:2@1") << "each rank has one sequence";
  EXPECT_EQ(cuts(4, {.data = 2, .tensor = 2}), "tensor:2@0x2");
}

// A matrix (out, in), as which Llama's are stored, adds up parts over its columns.
// A matrix that lies transposed is cut along its other dim, and its role says the same.
TEST(SeedCuts, GoByHowAMatrixLies) {
  auto dim_of = [](const std::string& spec) {
    Graph graph = test::parse("graph g {\n  param w = %0 {" + spec + "} : f32[8,8]\n  result y = %0\n}");
    PassContext context;
    context.mesh = step_mesh({.tensor = 2});
    return seed_cuts(graph, context).at(0).at(0).dim;
  };
  EXPECT_EQ(dim_of(R"(role="column")"), 1);
  EXPECT_EQ(dim_of(R"(role="column", transposed=true)"), 0);
  EXPECT_EQ(dim_of(R"(role="row")"), 0);
  EXPECT_EQ(dim_of(R"(role="row", transposed=true)"), 1);
}

}  // namespace
}  // namespace tokamak
