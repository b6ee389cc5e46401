// Text from a model: one program takes prompts into caches of keys and values, another chooses a token more of every
// row, which it finds and leaves in the backend's memory, so that the host only reads along.
// Tests: tests/e2e/generate_test.cpp.
#pragma once

#include "compile/step_compiler.h"
#include "exec/program.h"
#include "ops/sampler.h"

#include <deque>
#include <functional>
#include <span>

namespace tokamak {

/// One of the texts that are generated side by side.
struct GenerationRow {
  std::vector<int32_t> prompt;  // one token or more
  int64_t seed = 0;             // the same seed gives the same tokens
};

/// Of a prompt, how many of its last tokens are kept where `count` are to follow: all that fit into the context, or of
/// a longer one as many as leave room for the count, but at least half a context.
int64_t kept_prompt(int64_t prompt, int64_t count, int64_t context);

class Generator {
 public:
  /// Room for `rows` texts at a time, all of it allocated now. Parameters are those of `trained`, padded or not, as
  /// they are at the last take_weights(); without it (null) they are to be written to weights(). `ranks`: those of a
  /// mesh of axis `tensor` alone, over which matrices, caches and vocabulary are divided, as parameters of `trained`
  /// are; all of them make the same calls and get the same tokens. null: one rank. Throws UserError before anything is
  /// allocated when `available_bytes` (0: unknown) are fewer than planned.
  Generator(const ResolvedRun& run, const Platform& platform, Backend& backend, int64_t rows = 1,
            const TensorStore* trained = nullptr, int64_t available_bytes = 0, const MeshRanks* ranks = nullptr);

  /// What it takes beside `trained`: weights in another type, caches, inputs, intermediates, scratch memory.
  int64_t planned_bytes() const { return planned_bytes_; }

  /// Parameters that are only read in a low type (compile.precision) are stored in that.
  TensorStore& weights() { return store_; }
  void take_weights();

  /// The program of a step.
  Program& decode() { return decode_; }

  /// A token of row `row` as it becomes known; false: no more of that row.
  using OnToken = std::function<bool(size_t row, int32_t token)>;

  /// Continues each prompt (at most `rows` of them) by `count` tokens. Of a prompt longer than the context
  /// kept_prompt() tokens are kept. When a row's context is full, the newer half of it is. UserError when the model
  /// gives logits that are not finite. With options that need_logits() the host chooses, which waits for each step.
  std::vector<std::vector<int32_t>> generate(const std::vector<GenerationRow>& texts, int64_t count,
                                             const SamplingOptions& options, const OnToken& on_token = {});
  /// Of the token that was told last of a row, where options.log_probabilities asks for it.
  double log_probability(size_t row) const { return rows_[row].log_probability; }
  /// The same of one row.
  std::vector<int32_t> generate(std::span<const int32_t> prompt, int64_t count, const SamplingOptions& options,
                                int64_t seed, const std::function<bool(int32_t)>& on_token = {});

 private:
  struct Plans {
    Plan prefill, decode;
    int64_t bytes = 0;  // see planned_bytes()
  };
  struct Row {
    std::vector<int32_t> tokens;  // the prompt and what is known of what follows it
    int64_t position = 0;         // tokens in the cache, when all that was asked for is done
    bool active = false;
    int64_t seed = 0;
    double log_probability = 0;  // of the last token
  };
  struct Feed {
    std::span<const int32_t> tokens;
  };

  static Plans make_plans(const ResolvedRun& run, const Platform& platform, int64_t rows, const TensorStore* trained,
                          int64_t available_bytes, const MeshRanks* ranks);
  Generator(Plans plans, const ResolvedRun& run, Backend& backend, int64_t rows, const TensorStore* trained,
            const MeshRanks* ranks);
  bool share_weights(const Graph& graph);
  void prepare_cast();
  void begin(const std::vector<GenerationRow>& texts, int64_t count, const SamplingOptions& options);
  void fill_caches(const std::vector<size_t>& rows, int64_t kept);
  void fill_chunk(const std::vector<Feed>& feeds, size_t first);
  int64_t chunk() const;
  void write_state();
  void step();
  void step_on_host(const OnToken& on_token);
  int32_t choose(Row& row, std::span<const float> logits) const;
  void take_token(size_t row, int32_t token, const OnToken& on_token);
  bool may_deliver() const;
  void deliver(const OnToken& on_token);
  void drain(const OnToken& on_token);
  bool any_active() const;
  std::vector<size_t> full_rows() const;

  Backend& backend_;
  const MeshRanks* ranks_;  // null: one
  const TensorStore* trained_;
  int64_t planned_bytes_;
  int64_t context_, vocab_;
  SamplingOptions options_;  // of the texts at hand
  TensorStore store_;
  std::shared_ptr<Memory> arena_;  // of both programs
  bool shared_;                    // before the programs make what the store lacks
  Program prefill_, decode_;
  std::unique_ptr<Kernel> cast_;  // of trained parameters to those that are stored in another type
  std::vector<const void*> cast_inputs_;
  std::vector<void*> cast_outputs_;
  std::vector<Row> rows_;
  int64_t drawn_ = 0;                                // tokens asked for of each row
  std::deque<std::unique_ptr<Readback>> under_way_;  // the tokens of steps, the oldest first
};

}  // namespace tokamak
