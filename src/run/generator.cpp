#include "run/generator.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "model/model.h"
#include "ops/multi_cast.h"
#include "passes/pad_heads.h"
#include "passes/step_mesh.h"
#include "plan/units.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tokamak {
namespace {

// Of a prompt, at a time: as many as a matmul takes for little more than reading its weights once.
constexpr int64_t kChunk = 32;

// Steps that a backend with a queue may be ahead of what the host has read.
constexpr size_t kAhead = 8;

// Of a parameter, all of it as it is stored already, which may be padded; else with a vocabulary of a multiple of so
// many rows.
ValueType stored_type(const Graph& graph, const Argument& a, const TensorStore* store, int64_t rows) {
  ValueType type = store ? store->type(a.name) : graph.type(a.value);
  if (store)
    type.shape = whole_shape(type.shape, store->spec(a.name).cuts);
  else if (a.spec.role == Role::kEmbedding || a.spec.role == Role::kClassifier)
    type.shape[0] = (type.shape[0] + rows - 1) / rows * rows;
  return type;
}

Graph as_stored(const Graph& graph, const TensorStore* store, int64_t rows) {
  std::map<ValueId, ArgumentForm> forms;
  for (const Argument& a : graph.arguments())
    if (is_parameter(a.spec.role)) forms[a.value] = with_type(a, stored_type(graph, a, store, rows));
  Rewriter rewriter(graph, forms);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

bool is_shared(const Graph& graph, const Argument& argument, const TensorStore* trained) {
  return trained && is_parameter(argument.spec.role) && trained->type(argument.name) == graph.type(argument.value);
}

int64_t bytes_beside(const TensorStore* trained, const Plan& prefill, const Plan& decode) {
  int64_t bytes = std::max(prefill.arena_bytes, decode.arena_bytes);
  std::set<std::string_view> seen;
  for (const Plan* plan : {&prefill, &decode}) {
    bytes += plan->input_bytes + plan->scratch_bytes;
    for (const Argument& a : plan->graph.arguments())
      if (a.kind != Argument::Kind::kInput && !is_shared(plan->graph, a, trained) && seen.insert(a.name).second)
        bytes += num_bytes(plan->graph.type(a.value));
  }
  return bytes;
}

DType cache_type(const ResolvedRun& run) {
  switch (run.compile.precision) {
    case Precision::kFp8:
    case Precision::kBf16: return DType::kBF16;
    case Precision::kFp16: return DType::kF16;
    default: return DType::kF32;
  }
}

}  // namespace

int64_t kept_prompt(int64_t prompt, int64_t count, int64_t context) {
  if (prompt <= context) return prompt;
  return std::max<int64_t>({context - count, context / 2, 1});
}

Generator::Plans Generator::make_plans(const ResolvedRun& run, const Platform& platform, int64_t rows,
                                       const TensorStore* trained, int64_t available_bytes, const MeshRanks* ranks) {
  Mesh mesh = ranks ? ranks->mesh() : Mesh{};
  int64_t divided = ranks ? mesh.num_ranks() * platform.target.vocab_multiple : 1;
  const ModelConfig& model = run.asked.model;
  DType cache = cache_type(run);
  int64_t chunk = std::min(kChunk, model.context);
  Graph decode = decode_graph(model, rows, cache), prefill = prefill_graph(model, rows, chunk, cache);
  for (Graph* graph : {&decode, &prefill}) {
    pad_heads(*graph, mesh.size(kTensorAxis));
    *graph = as_stored(*graph, trained, divided);
  }
  Plans plans;
  plans.decode = compile_generation(std::move(decode), run, platform, nullptr, mesh).plan;
  plans.prefill = compile_generation(std::move(prefill), run, platform, &plans.decode.graph, mesh).plan;
  plans.bytes = bytes_beside(trained, plans.prefill, plans.decode);
  if (available_bytes > 0 && plans.bytes > available_bytes)
    user_error(
        "[memory] expected at most {} for generating text, got a plan of {} (caches of keys and values, weights in the "
        "precision that is computed in, intermediates); lower train.batch or model.context, or set "
        "--train.sample_every=0",
        format_bytes(double(available_bytes)), format_bytes(double(plans.bytes)));
  return plans;
}

Generator::Generator(const ResolvedRun& run, const Platform& platform, Backend& backend, int64_t rows,
                     const TensorStore* trained, int64_t available_bytes, const MeshRanks* ranks)
    : Generator(make_plans(run, platform, rows, trained, available_bytes, ranks), run, backend, rows, trained, ranks) {}

Generator::Generator(Plans plans, const ResolvedRun& run, Backend& backend, int64_t rows, const TensorStore* trained,
                     const MeshRanks* ranks)
    : backend_(backend), ranks_(ranks), trained_(trained), planned_bytes_(plans.bytes),
      context_(run.asked.model.context), vocab_(run.asked.model.vocab), store_(backend, ranks),
      arena_(backend.allocate(std::max(plans.prefill.arena_bytes, plans.decode.arena_bytes))),
      shared_(share_weights(plans.decode.graph)),
      prefill_(std::move(plans.prefill), backend, store_, {ranks, arena_, run.compile.cuda_graph}),
      decode_(std::move(plans.decode), backend, store_,
              {.ranks = ranks, .arena = arena_, .record = run.compile.cuda_graph, .chain = run.compile.chain}),
      rows_(size_t(rows)) {
  if (trained_) prepare_cast();
}

// Parameters that are stored as they are trained are one with those.
bool Generator::share_weights(const Graph& graph) {
  for (const Argument& argument : graph.arguments())
    if (is_shared(graph, argument, trained_)) store_.share(*trained_, argument.name);
  return trained_ != nullptr;
}

void Generator::prepare_cast() {
  Graph graph("cast");
  GraphBuilder g(graph);
  ValueIds from;
  DType to = DType::kF32;
  for (const std::string& name : trained_->names()) {
    if (!is_parameter(trained_->spec(name).role) || store_.data(name) == trained_->data(name)) continue;
    from.push_back(g.input(name, trained_->type(name)));
    to = store_.type(name).dtype;
    cast_inputs_.push_back(trained_->data(name));
    cast_outputs_.push_back(store_.data(name));
  }
  if (from.empty()) return;
  multi_cast(g, from, to);
  cast_ = backend_.compile(graph, graph.nodes()[0]);
}

void Generator::take_weights() {
  if (cast_) cast_->run(cast_inputs_, cast_outputs_);
}

std::vector<std::vector<int32_t>> Generator::generate(const std::vector<GenerationRow>& texts, int64_t count,
                                                      const SamplingOptions& options, const OnToken& on_token) {
  begin(texts, count, options);
  while (any_active() && drawn_ < count) {
    if (std::vector<size_t> full = full_rows(); !full.empty()) {
      drain(on_token);
      std::erase_if(full, [&](size_t r) { return !rows_[r].active; });
      fill_caches(full, std::max<int64_t>(1, context_ / 2));
      continue;
    }
    if (needs_logits(options)) {
      step_on_host(on_token);
      continue;
    }
    step();
    while (may_deliver()) deliver(on_token);
  }
  drain(on_token);
  std::vector<std::vector<int32_t>> out;
  for (size_t r = 0; r < texts.size(); ++r)
    out.emplace_back(rows_[r].tokens.begin() + int64_t(texts[r].prompt.size()), rows_[r].tokens.end());
  return out;
}

std::vector<int32_t> Generator::generate(std::span<const int32_t> prompt, int64_t count, const SamplingOptions& options,
                                         int64_t seed, const std::function<bool(int32_t)>& on_token) {
  OnToken forward = [&](size_t, int32_t token) { return on_token(token); };
  return generate({{{prompt.begin(), prompt.end()}, seed}}, count, options, on_token ? forward : OnToken()).at(0);
}

// All rows are set: those without a text begin, and end, with nothing.
void Generator::begin(const std::vector<GenerationRow>& texts, int64_t count, const SamplingOptions& options) {
  validate(options);
  options_ = options;
  TOKAMAK_CHECK(texts.size() <= rows_.size(), "{} texts in {} rows", texts.size(), rows_.size());
  std::vector<int32_t> seeds(2 * rows_.size());
  std::vector<size_t> used(texts.size());
  for (size_t r = 0; r < rows_.size(); ++r) {
    rows_[r] = {{0}, 0, false};
    if (r >= texts.size()) continue;
    if (texts[r].prompt.empty()) user_error("[generate] expected a prompt of one token or more, got none");
    rows_[r] = {texts[r].prompt, 0, count > 0, texts[r].seed};
    seeds[2 * r] = int32_t(uint64_t(texts[r].seed));
    seeds[2 * r + 1] = int32_t(uint64_t(texts[r].seed) >> 32);
    used[r] = r;
  }
  drawn_ = 0;
  float settings[] = {float(options.temperature), float(options.top_k), float(options.top_p)};
  decode_.set_input("seeds", seeds.data(), int64_t(seeds.size()) * 4);
  decode_.set_input("settings", settings, sizeof settings);
  fill_caches(used, kept_prompt(context_ + 1, count, context_));
}

// What the model sees of a text: all of it, or where that is more than fits, the last `kept` tokens. All but the last
// one go into the cache; the next step begins with that one.
void Generator::fill_caches(const std::vector<size_t>& rows, int64_t kept) {
  std::vector<Feed> feeds(rows_.size());
  size_t longest = 0;
  for (size_t r : rows) {
    std::span<const int32_t> tokens(rows_[r].tokens);
    if (tokens.size() > size_t(context_)) tokens = tokens.last(size_t(kept));
    feeds[r].tokens = tokens.first(tokens.size() - 1);
    rows_[r].position = int64_t(tokens.size()) - 1;
    longest = std::max(longest, feeds[r].tokens.size());
  }
  for (size_t first = 0; first < longest; first += size_t(chunk())) fill_chunk(feeds, first);
  write_state();
}

int64_t Generator::chunk() const {
  return prefill_.plan().graph.shape(prefill_.plan().graph.find_argument("tokens"))[1];
}

// The tokens of each row from `first` on. What is behind the last one of a row is written over before it is read; a row
// that has none here begins where nothing is stored.
void Generator::fill_chunk(const std::vector<Feed>& feeds, size_t first) {
  auto length = size_t(chunk());
  std::vector<int32_t> tokens(feeds.size() * length), positions(tokens.size()), start(feeds.size(), int32_t(context_));
  for (size_t r = 0; r < feeds.size(); ++r) {
    std::span<const int32_t> all = feeds[r].tokens;
    if (first >= all.size()) continue;
    start[r] = int32_t(first);
    for (size_t t = 0; t < length; ++t) {
      positions[r * length + t] = int32_t(std::min(first + t, size_t(context_ - 1)));
      if (first + t < all.size()) tokens[r * length + t] = all[first + t];
    }
  }
  prefill_.set_input("tokens", tokens.data(), int64_t(tokens.size()) * 4);
  prefill_.set_input("positions", positions.data(), int64_t(positions.size()) * 4);
  prefill_.set_input("start", start.data(), int64_t(start.size()) * 4);
  prefill_.run();
}

void Generator::write_state() {
  std::vector<int32_t> token, position, drawn(rows_.size(), int32_t(drawn_));
  for (const Row& row : rows_) {
    token.push_back(row.tokens.back());
    position.push_back(int32_t(std::min(row.position, context_ - 1)));
  }
  auto write = [&](const char* name, const std::vector<int32_t>& values) {
    store_.write(name, values.data(), int64_t(values.size()) * 4);
  };
  write(kNextToken, token);
  write(kNextPosition, position);
  write(kTokensDrawn, drawn);
}

void Generator::step() {
  decode_.run();
  under_way_.push_back(decode_.read_result("token"));
  for (Row& row : rows_) ++row.position;
  ++drawn_;
}

// The device chooses, too, from what it knows of; what it goes on with is written over.
void Generator::step_on_host(const OnToken& on_token) {
  decode_.run();
  std::unique_ptr<Readback> readback = decode_.read_result(kLogits);
  std::span<const std::byte> bytes = readback->wait();
  std::vector<float> logits(bytes.size() / sizeof(float));
  std::memcpy(logits.data(), bytes.data(), logits.size() * sizeof(float));
  size_t stride = logits.size() / rows_.size();
  for (size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    ++row.position;
    if (row.active) take_token(r, choose(row, std::span(logits).subspan(r * stride, size_t(vocab_))), on_token);
  }
  ++drawn_;
  write_state();
}

int32_t Generator::choose(Row& row, std::span<const float> logits) const {
  std::vector<float> weighed(logits.begin(), logits.end());
  if (options_.repetition_penalty != 1) penalise(weighed, row.tokens, options_.repetition_penalty);
  int32_t token = sample(weighed, options_, sampling_uniform(row.seed, drawn_));
  if (options_.log_probabilities && token != kNoToken) row.log_probability = tokamak::log_probability(logits, token);
  return token;
}

void Generator::take_token(size_t row, int32_t token, const OnToken& on_token) {
  if (token == kNoToken)
    user_error(
        "[generate] expected finite logits, got others; the model is broken (did its training diverge?): use an "
        "earlier checkpoint");
  rows_[row].tokens.push_back(token);
  if (on_token && !on_token(row, token)) rows_[row].active = false;
}

// Ranks must not go by what is ready: they have to run the same steps, also when a text ends.
bool Generator::may_deliver() const {
  return under_way_.size() >= kAhead || (!under_way_.empty() && !ranks_ && under_way_.front()->ready());
}

void Generator::deliver(const OnToken& on_token) {
  std::unique_ptr<Readback> readback = std::move(under_way_.front());
  under_way_.pop_front();
  std::span<const std::byte> bytes = readback->wait();
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (!rows_[r].active) continue;
    int32_t token = kNoToken;
    std::memcpy(&token, bytes.data() + 4 * r, sizeof token);
    take_token(r, token, on_token);
  }
}

void Generator::drain(const OnToken& on_token) {
  while (!under_way_.empty()) deliver(on_token);
}

bool Generator::any_active() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.active; });
}

std::vector<size_t> Generator::full_rows() const {
  std::vector<size_t> full;
  for (size_t r = 0; r < rows_.size(); ++r)
    if (rows_[r].active && rows_[r].position == context_) full.push_back(r);
  return full;
}

}  // namespace tokamak
