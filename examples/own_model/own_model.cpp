// own_model TEXT [STEPS]: a language model that Tokamak does not have, built of its ops, trained on the bytes of a file
// and asked for a text. From the 8 bytes before, a network with one hidden layer tells the next one (Bengio et al., "A
// neural probabilistic language model", 2003).
#include <tokamak/tokamak.h>

#include <cmath>
#include <cstdio>
#include <fstream>

using namespace tokamak;
constexpr int64_t kBatch = 128, kContext = 8, kWidth = 16, kHidden = 128, kBytes = 256;

ValueType f32(Shape shape) { return {DType::kF32, shape}; }
ValueType i32(Shape shape) { return {DType::kI32, shape}; }

/// tokens (B, kContext) -> logits (B, kBytes)
ValueId model(GraphBuilder& g, ValueId tokens) {
  ValueId table = g.parameter("table", f32({kBytes, kWidth}));
  ValueId w1 = g.parameter("w1", f32({kContext * kWidth, kHidden})), b1 = g.parameter("b1", f32({kHidden}));
  ValueId w2 = g.parameter("w2", f32({kHidden, kBytes})), b2 = g.parameter("b2", f32({kBytes}));
  ValueId x = reshape(g, embedding(g, table, tokens), {g.shape(tokens)[0], kContext * kWidth});
  return add(g, matmul(g, gelu(g, add(g, matmul(g, x, w1), b1)), w2), b2);
}

/// Forward, loss, backward and AdamW.
Graph training_step() {
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId logits = model(g, g.input("tokens", i32({kBatch, kContext})));
  ValueId losses = cross_entropy(g, logits, g.input("targets", i32({kBatch})), kBytes);
  ValueId loss = mul(g, reduce_sum(g, losses, {0}, false), constant(g, 1.0 / kBatch));
  graph.add_result("loss", loss);
  Gradients update;
  for (const char* name : {"table", "w1", "b1", "w2", "b2"}) update.parameters.push_back(graph.find_argument(name));
  update.grads = differentiate(g, loss, update.parameters);
  append_update(g, update, OptimizerConfig());
  return graph;
}

Graph generation_step() {
  Graph graph("generate");
  GraphBuilder g(graph);
  graph.add_result("chances", softmax(g, model(g, g.input("tokens", i32({1, kContext})))));
  return graph;
}

/// Uniform in +-1/sqrt(rows); biases stay zero.
void initialise(TensorStore& store, const char* name, uint64_t key) {
  Shape shape = store.type(name).shape;
  std::vector<float> values(size_t(shape[0] * shape[1]));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (2 * uniform_float(philox4x32(key, i)[0]) - 1) / std::sqrt(float(shape[0]));
  store.write(name, values.data(), int64_t(values.size() * sizeof(float)));
}

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (int64_t(text.size()) <= kContext) return std::fprintf(stderr, "usage: own_model TEXT [STEPS]\n"), 1;
  const int steps = argc > 2 ? std::stoi(argv[2]) : 3000;

  Platform machine = cpu::measure_platform();
  auto backend = cpu::make_backend();
  TensorStore store(*backend);  // parameters and the optimizer's states, which both programs share by name
  auto compiled = [&](Graph graph) {
    run_passes(graph, PassStage::kStep, {machine, CompileConfig()});
    return Program(make_plan(graph, machine), *backend, store);
  };
  Program step = compiled(training_step()), generate = compiled(generation_step());
  for (const char* name : {"table", "w1", "w2"}) initialise(store, name, uint64_t(name[0] + name[1]));

  std::vector<int32_t> tokens(kBatch * kContext), targets(kBatch);
  for (int i = 0; i < steps; ++i) {
    for (size_t row = 0; row < kBatch; ++row) {
      size_t at = philox4x32(1, uint64_t(i), row)[0] % (text.size() - kContext);
      for (size_t t = 0; t < kContext; ++t) tokens[row * kContext + t] = uint8_t(text[at + t]);
      targets[row] = uint8_t(text[at + kContext]);
    }
    float lr = 3e-3f * float(steps - i) / float(steps);
    step.set_input("tokens", tokens.data(), kBatch * kContext * int64_t(sizeof(int32_t)));
    step.set_input("targets", targets.data(), kBatch * int64_t(sizeof(int32_t)));
    step.set_input("lr", &lr, sizeof lr);
    step.run();
    if (i % 100 == 0 || i + 1 == steps) std::printf("step %d: loss %.3f\n", i + 1, double(step.get_scalar("loss")));
  }
  std::vector<float> chances(kBytes);
  for (uint64_t i = 0; i < 200; ++i) {
    generate.set_input("tokens", tokens.data(), kContext * int64_t(sizeof(int32_t)));
    generate.run();
    generate.get_result("chances", chances.data(), kBytes * int64_t(sizeof(float)));
    float drawn = uniform_float(philox4x32(2, i)[0]);
    int next = 0;
    while (next + 1 < kBytes && (drawn -= chances[size_t(next)]) > 0) ++next;
    std::putchar(next);
    tokens.erase(tokens.begin());
    tokens.insert(tokens.begin() + kContext - 1, next);
  }
  std::puts("");
}
