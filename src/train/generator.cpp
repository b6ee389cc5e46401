#include "train/generator.h"

#include "base/error.h"
#include "config/config.h"
#include "graph/rewriter.h"
#include "model/model.h"

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

constexpr int64_t kChunk = 32;

// The graph with its parameters as they are stored already, which may be padded.
Graph as_stored(const Graph& graph, const TensorStore& store) {
  std::map<ValueId, ValueType> types;
  for (const Argument& a : graph.arguments())
    if (is_parameter(a.layout.role) && store.contains(a.name)) types[a.value] = store.type(a.name);
  Rewriter rewriter(graph, types);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

Plan decode_plan(const RunConfig& config, const Platform& platform, const TensorStore& store, int64_t t) {
  return compile_inference(as_stored(decode_graph(config.model, 1, t), store), config, platform).plan;
}

int64_t chunk_size(const RunConfig& config) { return std::min(kChunk, config.model.context); }

}  // namespace

Generator::Generator(const RunConfig& config, const Platform& platform, Backend& backend, TensorStore& store)
    : context_(config.model.context), vocab_(config.model.vocab),
      chunk_(decode_plan(config, platform, store, chunk_size(config)), backend, store),
      single_(decode_plan(config, platform, store, 1), backend, store) {}

void Generator::feed_with(Program& program, std::span<const int32_t> tokens) {
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), int32_t(position_));
  auto position = int32_t(position_);
  program.set_input("tokens", tokens.data(), int64_t(tokens.size()) * 4);
  program.set_input("positions", positions.data(), int64_t(positions.size()) * 4);
  program.set_input("position", &position, 4);
  program.run();
  position_ += int64_t(tokens.size());
  ValueId result = program.plan().graph.find_result("logits");
  RowsCols shape = rows_cols(program.plan().graph.shape(result));
  std::vector<float> all(size_t(shape.rows * shape.cols));
  program.get_result("logits", all.data(), int64_t(all.size()) * 4);
  auto last = all.end() - shape.cols;
  logits_.assign(last, last + vocab_);
}

void Generator::feed(std::span<const int32_t> tokens) {
  auto chunk = size_t(rows_cols(chunk_.plan().graph.shape(chunk_.plan().graph.find_result("logits"))).rows);
  while (tokens.size() >= chunk) {
    feed_with(chunk_, tokens.first(chunk));
    tokens = tokens.subspan(chunk);
  }
  for (size_t i = 0; i < tokens.size(); ++i) feed_with(single_, tokens.subspan(i, 1));
}

std::vector<int32_t> Generator::generate(std::span<const int32_t> prompt, int64_t count, const SamplingOptions& options,
                                         int64_t seed, const std::function<bool(int32_t)>& on_token) {
  validate(options);
  if (prompt.empty()) user_error("[generate] expected a prompt of one token or more, got none");
  std::vector<int32_t> tokens(prompt.begin(), prompt.end());
  position_ = 0;
  auto keep = size_t(std::max<int64_t>(1, context_ / 2));
  // A prompt longer than the context is cut to its newer half, as a full cache is.
  feed(std::span(tokens).last(tokens.size() > size_t(context_) ? keep : tokens.size()));
  for (int64_t i = 0; i < count; ++i) {
    int32_t token = sample(logits_, options, sampling_uniform(seed, i));
    tokens.push_back(token);
    if (on_token && !on_token(token)) break;
    if (i + 1 == count) break;
    if (position_ == context_) {
      position_ = 0;
      feed(std::span(tokens).last(keep));
    } else {
      feed({&token, 1});
    }
  }
  return {tokens.begin() + int64_t(prompt.size()), tokens.end()};
}

}  // namespace tokamak
