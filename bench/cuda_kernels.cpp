// The hand-written CUDA kernels in the sizes of GPT-2 124M with 65,536 tokens, against the device's own copies. Bytes
// are what the op must read and write at least.
#include "backend/cuda/cuda_backend.h"
#include "base/random.h"
#include "exec/program.h"
#include "graph/builder.h"
#include "ops/adamw.h"
#include "ops/embedding.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr int64_t kTokens = 65536, kVocab = 50304, kCols = 768;
constexpr int kRuns = 20;

struct Case {
  std::string name;
  Graph graph;
  double bytes;
};

ValueType f32(Shape shape) { return {DType::kF32, std::move(shape)}; }
ValueType bf16(Shape shape) { return {DType::kBF16, std::move(shape)}; }

Case embedding_case(DType dtype) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId table = g.parameter("table", {dtype, {kVocab, kCols}}), ids = g.input("ids", {DType::kI32, {kTokens}});
  graph.add_result("y", embedding(g, table, ids));
  return {fmt::format("embedding {}", dtype_name(dtype)), graph, 2.0 * kTokens * kCols * double(dtype_bytes(dtype))};
}

// In place; the bytes are those of dy.
Case embedding_grad_case(DType dtype, const char* ids) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId dy = g.input("dy", {dtype, {kTokens, kCols}}), position = g.input(ids, {DType::kI32, {kTokens}});
  ValueId state = graph.add_argument(Argument::Kind::kState, "grad", f32({kVocab, kCols}));
  graph.add_update(state, g.add1(op::embedding_grad, {dy, position, state}, {{"rows", kVocab}}));
  return {fmt::format("embedding_grad {}, {}", dtype_name(dtype), ids), graph,
          1.0 * kTokens * kCols * double(dtype_bytes(dtype))};
}

Case transpose_case(const char* name, Shape shape, Shape perm) {
  Graph graph;
  GraphBuilder g(graph);
  graph.add_result("y", transpose(g, g.input("x", bf16(shape)), perm));
  return {name, graph, 2.0 * double(num_bytes(bf16(shape)))};
}

// Sizes of the tensors of GPT-2 124M, about.
std::vector<Shape> parameters() {
  std::vector<Shape> shapes{{kVocab, kCols}, {1024, kCols}};
  for (int layer = 0; layer < 12; ++layer)
    for (Shape shape : {Shape{kCols, 3 * kCols},
                        {3 * kCols},
                        {kCols, kCols},
                        {kCols},
                        {kCols, 4 * kCols},
                        {4 * kCols},
                        {4 * kCols, kCols},
                        {kCols},
                        {kCols},
                        {kCols},
                        {kCols},
                        {kCols}})
      shapes.push_back(shape);
  return shapes;
}

Case sum_squares_case() {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  double bytes = 0;
  for (const Shape& shape : parameters()) {
    inputs.push_back(g.input(fmt::format("g{}", inputs.size()), f32(shape)));
    bytes += double(num_bytes(f32(shape)));
  }
  graph.add_result("y", g.add1(op::sum_squares, inputs));
  return {"sum_squares 124M f32", graph, bytes};
}

Case adamw_case(DType grad) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  for (const char* name : {"lr", "scale", "step"}) inputs.push_back(g.input(name, f32({})));
  Shape decayed;
  double bytes = 0;
  for (const Shape& shape : parameters()) {
    for (const char* part : {"p", "g", "m", "v"})
      inputs.push_back(graph.add_argument(Argument::Kind::kState, fmt::format("{}{}", part, decayed.size()),
                                          *part == 'g' ? ValueType{grad, shape} : f32(shape)));
    decayed.push_back(shape.size() == 2);
    bytes += double(num_elements(shape)) * double(24 + dtype_bytes(grad));
  }
  auto outputs = g.add(op::multi_adamw, inputs,
                       {{"beta1", 0.9}, {"beta2", 0.95}, {"decay", 0.1}, {"decayed", decayed}, {"eps", 1e-8}});
  for (size_t o = 0; o < outputs.size(); ++o)
    graph.add_update(inputs[3 + o / 3 * 4 + (o % 3 == 0 ? 0 : o % 3 + 1)], outputs[o]);
  return {fmt::format("multi_adamw 124M, gradients {}", dtype_name(grad)), graph, bytes};
}

Case multi_cast_case() {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  double bytes = 0;
  for (const Shape& shape : parameters()) {
    inputs.push_back(g.input(fmt::format("p{}", inputs.size()), f32(shape)));
    bytes += double(num_elements(shape)) * 6;
  }
  ValueIds outputs = multi_cast(g, inputs, DType::kBF16);
  for (size_t o = 0; o < outputs.size(); ++o) graph.add_result(fmt::format("y{}", o), outputs[o]);
  return {"multi_cast 124M f32 to bf16", graph, bytes};
}

void set_inputs(Program& program, const Graph& graph) {
  std::vector<int32_t> ids(kTokens, 7);
  for (const char* name : {"lr", "scale", "step"})
    if (float one = 1; graph.find_argument(name) != kNoValue) program.set_input(name, &one, sizeof one);
  if (graph.find_argument("equal") != kNoValue) program.set_input("equal", ids.data(), kTokens * 4);
  for (const char* name : {"ids", "random"}) {  // as frequent as words in text: density 1 / id
    for (int64_t i = 0; i < kTokens; ++i)
      ids[size_t(i)] = int32_t(std::pow(double(kVocab), double(uniform_element(1, i, 0)))) - 1;
    if (graph.find_argument(name) != kNoValue) program.set_input(name, ids.data(), kTokens * 4);
  }
}

void measure(Case c, Backend& backend) {
  TensorStore store(backend);
  ProgramOptions options;
  options.record = true;
  Program program(make_plan(c.graph, cuda::nominal_platform()), backend, store, options);
  set_inputs(program, c.graph);
  for (int i = 0; i < 3; ++i) program.run();  // compiles, records
  double seconds = backend.time([&] {
    for (int i = 0; i < kRuns; ++i) program.run();
  }) / kRuns;
  fmt::print("{:<36} {:8.4f} ms {:8.0f} GB/s\n", c.name, seconds * 1e3, c.bytes / seconds * 1e-9);
}

void measure_copy(Backend& backend) {
  constexpr int64_t kBytes = 1 << 30;
  auto from = backend.allocate(kBytes), to = backend.allocate(kBytes);
  auto copy = [&] {
    for (int i = 0; i < kRuns; ++i) backend.copy(to->data(), from->data(), kBytes);
  };
  copy();
  fmt::print("{:<36} {:>11} {:8.0f} GB/s\n", "device copy", "", 2.0 * kBytes * kRuns / backend.time(copy) * 1e-9);
}

void measure_all() {
  auto backend = cuda::make_backend(0, cuda::default_cache());
  fmt::print("{}\n", cuda::describe_device(0).versions);
  measure_copy(*backend);
  for (DType dtype : {DType::kF32, DType::kBF16}) measure(embedding_case(dtype), *backend);
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (const char* ids : {"random", "equal"}) measure(embedding_grad_case(dtype, ids), *backend);
  measure(transpose_case("transpose heads bf16", {64, 1024, 12, 64}, {0, 2, 1, 3}), *backend);
  measure(transpose_case("transpose heads back bf16", {64, 12, 1024, 64}, {0, 2, 1, 3}), *backend);
  measure(transpose_case("transpose matrix bf16", {kTokens, kCols}, {1, 0}), *backend);
  measure(sum_squares_case(), *backend);
  measure(multi_cast_case(), *backend);
  for (DType dtype : {DType::kF32, DType::kBF16}) measure(adamw_case(dtype), *backend);
}

}  // namespace
}  // namespace tokamak

int main() {
  if (tokamak::cuda::device_count() == 0) {
    fmt::print("there is no GPU here\n");
    return 0;
  }
  tokamak::measure_all();
}
