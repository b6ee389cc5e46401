// How likely a model finds given continuations: their log-likelihoods, many at a time. Tests:
// tests/evaluate/scorer_test.cpp, tests/mesh/scorer_test.cpp.
#pragma once

#include "compile/resolved_run.h"
#include "exec/program.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace tokamak {

/// Tokens that follow others. Neither is empty, and together they are at most one more than model.context.
struct Continuation {
  std::vector<int32_t> context, tokens;
};

struct Score {
  double log_likelihood = 0;  // of all tokens of the continuation, nats
  bool is_greedy = true;      // each of them is the likeliest token at its place
};

/// UserError for a mesh that scores cannot be computed on.
void require_scorable(const ResolvedRun& run);

struct ScorerOptions {
  const MeshRanks* ranks = nullptr;  // null: one rank; else all of them make the same calls and get the same scores
  std::shared_ptr<Memory> arena;  // of a program that does not run at the same time, to be used if it is large enough;
  int64_t arena_bytes = 0;        // null: none
};

class Scorer {
 public:
  /// Parameters are those of `store`, as a training step of this run has them there. All must outlive the scorer.
  Scorer(const ResolvedRun& run, const Platform& platform, Backend& backend, TensorStore& store,
         ScorerOptions options = {});

  /// Compiles what these take and takes its memory; score() does so by itself, later.
  void prepare(std::span<const Continuation> all);

  /// In the order of the continuations. They are computed from the longest to the shortest, each in a batch of about
  /// its length. `progress` is told how many are done; what it throws ends the scoring.
  std::vector<Score> score(std::span<const Continuation> all, const std::function<void(size_t done)>& progress = {});

 private:
  struct Group {
    int64_t rows = 0;
    std::unique_ptr<Program> program;
  };

  struct Planned {
    int64_t rows = 0;
    Plan plan;
  };

  int64_t length_of(const Continuation& one) const;
  int64_t rows_of(int64_t length) const;
  Planned plan_of(int64_t length) const;
  void score_batch(Group& group, int64_t length, std::span<const Continuation> all, std::span<const size_t> batch,
                   std::vector<Score>& scores) const;

  const ResolvedRun& run_;
  const Platform& platform_;
  Backend& backend_;
  TensorStore& store_;
  ScorerOptions options_;
  std::map<int64_t, Group, std::greater<>> groups_;  // by length
};

}  // namespace tokamak
