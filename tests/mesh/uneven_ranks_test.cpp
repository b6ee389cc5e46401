// ZeRO on numbers of ranks that divide few of a model's dims: ranks that are threads, CPU kernels.
#include "compile/step_compiler.h"
#include "tests/mesh/train_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

RunConfig odd_run(int64_t ranks) {
  RunConfig config = tiny_mesh_run();
  config.model = {.layers = 2, .heads = 2, .width = 22, .context = 8, .vocab = 61};
  config.train.batch = 2 * ranks;
  config.mesh.slots = 1;
  return config;
}

void expect_as_one_rank(RunConfig config, int64_t ranks, std::initializer_list<int64_t> stages) {
  config.optimizer.eps = 1e-3;  // without it a step is the sign of a gradient, also of one that is rounding alone
  const int64_t tensor = config.mesh.tensor;
  config.mesh.data = config.mesh.tensor = 1;
  Outcome expected = train_on_mesh(config);
  config.mesh.data = ranks, config.mesh.tensor = tensor;
  for (int64_t zero : stages) {
    config.mesh.zero = zero;
    expect_close(expected, train_on_mesh(config),
                 config.optimizer.name + " on " + std::to_string(ranks) + ", zero " + std::to_string(zero));
  }
}

TEST(UnevenRanks, TrainAsOne) {
  for (int64_t ranks : {3, 5, 7}) expect_as_one_rank(odd_run(ranks), ranks, {1, 2, 3});
  for (int64_t ranks : {6, 12}) expect_as_one_rank(odd_run(ranks), ranks, {3});
}

TEST(UnevenRanks, TrainAsOneInSeveralMicroBatches) {
  RunConfig config = odd_run(3);
  config.train.total_batch = 2 * config.train.batch * config.model.context;
  expect_as_one_rank(config, 3, {1, 3});
}

TEST(UnevenRanks, TrainAsOneByOtherRules) {
  for (const char* name : {"muon", "normuon", "sgd", "adafactor"}) {
    RunConfig config = odd_run(3);
    config.optimizer.name = name;
    config.optimizer.ema = 0.5;
    expect_as_one_rank(config, 3, {3});
  }
}

// Each part that a tensor rank has of a matrix's rows gets rows of its own; a checkpoint has none of them.
TEST(UnevenRanks, TrainAsOneBesideTensor) {
  for (const char* name : {"adamw", "adamw8bit", "adafactor", "muon"}) {
    RunConfig config = odd_run(3);
    config.optimizer.name = name;
    config.optimizer.ema = 0.5;
    config.mesh.tensor = 2;
    config.optimizer.name == "adamw" ? expect_as_one_rank(config, 3, {1, 2, 3}) : expect_as_one_rank(config, 3, {3});
  }
  RunConfig llama = odd_run(5);
  llama.model = tiny_llama(llama.model);
  llama.mesh.tensor = 2;
  expect_as_one_rank(llama, 5, {3});
}

// A width and a vocabulary that the ranks do not divide; heads and half a context that they do.
TEST(UnevenRanks, TrainAsOneOverEveryAxis) {
  const MeshConfig meshes[] = {{.data = 2, .tensor = 3, .zero = 3},
                               {.tensor = 7},
                               {.tensor = 12},
                               {.data = 3, .context = 3, .zero = 2},
                               {.context = 5},
                               {.pipe = 3, .data = 3},
                               {.pipe = 5, .tensor = 2},
                               {.pipe = 3, .schedule = "interleaved", .interleave = 2}};
  for (MeshConfig mesh : meshes) {
    mesh.data = std::max<int64_t>(mesh.data, 1);
    RunConfig config = odd_run(mesh.data);
    int64_t heads = mesh.tensor == 1 ? 2 : mesh.tensor;
    config.model = {.layers = 5,
                    .heads = heads,
                    .width = 4 * heads + (mesh.tensor == 1 ? 3 * heads : 0),
                    .context = 2 * mesh.context * 3,
                    .vocab = 61};
    config.optimizer.eps = 1e-3;
    config.train.total_batch = (mesh.pipe > 1 ? 3 : 1) * config.train.batch * config.model.context;
    Outcome expected = train_on_mesh(config);
    mesh.slots = 1;
    config.mesh = mesh;
    expect_close(
        expected, train_on_mesh(config),
        fmt::format("pipe {}, data {}, context {}, tensor {}", mesh.pipe, mesh.data, mesh.context, mesh.tensor));
  }
}

TEST(UnevenRanks, CutEveryMatrixBesideTensor) {
  for (int64_t data : {3, 5, 6, 7, 12})
    for (int64_t zero : {1, 3}) {
      RunConfig config = odd_run(data);
      config.mesh = {.data = data, .tensor = 2, .zero = zero, .slots = 1};
      CompiledStep step = compile_step(resolve(config, {}), cpu::nominal_platform(1));
      const Graph& graph = step.programs[0].plan.graph;
      for (const Node& node : graph.nodes())  // rows of the MLP's second matrix
        EXPECT_FALSE(node.op->name == "first_rows" && node.attrs.get_int("rows") == 4 * config.model.width)
            << "tensor ranks have all rows, data " << data;
      for (const Argument& argument : graph.arguments()) {
        bool is_matrix = is_parameter(argument.spec.role) && argument.spec.global.size() == 2;
        auto is_of_data = [](const Cut& cut) { return cut.axis == kDataAxis; };
        EXPECT_TRUE(!is_matrix || std::ranges::any_of(argument.spec.cuts, is_of_data))
            << argument.name << ", data " << data << ", zero " << zero;
      }
    }
}

// Samples of text read whole parameters as they are stored; of those that are cut they gather the model's own rows.
TEST(UnevenRanks, HaveSharesOfParametersWithRowsAdded) {
  for (int64_t zero : {1, 2, 3}) {
    RunConfig config = odd_run(3);
    config.mesh.data = 3;
    config.mesh.zero = zero;
    int padded = 0;
    CompiledStep step = compile_step(resolve(config, {}), cpu::nominal_platform(1));
    const Graph& graph = step.programs[0].plan.graph;
    for (const Argument& argument : graph.arguments()) {
      if (!is_parameter(argument.spec.role)) continue;
      Shape stored = whole_shape(graph.shape(argument.value), argument.spec.cuts);
      if (stored == argument.spec.global) continue;
      ++padded;
      EXPECT_FALSE(argument.spec.cuts.empty()) << argument.name << ", zero " << zero;
    }
    EXPECT_GT(padded, 10);
  }
}

}  // namespace
}  // namespace tokamak::test
