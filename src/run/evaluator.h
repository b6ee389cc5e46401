// Validation loss over the beginning of a data split, always the same windows, each once.
// Tests: tests/run/evaluator_test.cpp, tests/e2e/eval_test.cpp.
#pragma once

#include "data/loader.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct ResolvedRun;

/// Of one entry of the data.
struct EntryLoss {
  std::string path;
  double loss = 0;     // mean, nats a token
  int64_t tokens = 0;  // that it was measured on: the targets that count
};

struct Evaluation {
  double loss = 0;                 // mean over the targets of all entries, nats a token
  double perplexity = 0;           // e^loss
  double bits_per_byte = 0;        // loss in bits x tokens / bytes of their text; 0 when the bytes are unknown
  int64_t tokens = 0;              // the targets that count
  int64_t windows = 0;             // that were taken,
  int64_t all_windows = 0;         // of this many
  std::vector<EntryLoss> entries;  // in the order of the data
  std::string unknown;             // a sentence that says why the bytes are unknown
};

/// How many windows so many batches of a validation are: of a micro-batch, or with slots of a step's sequences, as the
/// number of ranks then changes what a micro-batch is.
int64_t count_windows(const ResolvedRun& run, int64_t batches);

using LossesOf = std::function<std::vector<double>(std::span<const Batch>)>;

class Evaluator {
 public:
  /// `windows`: how many at most, of each entry its share of them from its beginning (at least one). The result does
  /// not depend on the size of a batch. `tokenizer` may be null. It counts the bytes of text where the data does not
  /// tell them. UserError where no target of an entry's windows counts.
  Evaluator(std::shared_ptr<const Corpus> corpus, const Tokenizer* tokenizer, const ResolvedRun& run, int64_t windows);

  /// `losses_of`, of batches_at_once(run) batches or fewer (compile/compiled_run.h), gives the mean loss of the
  /// targets that count in each of a batch's equal parts, of as many as it likes; they are added in the order of
  /// windows. UserError where files that were read turn out to be damaged.
  Evaluation evaluate(const LossesOf& losses_of) const;

 private:
  struct Entry {
    std::shared_ptr<const Corpus> corpus;  // of this one alone
    int64_t windows = 0;                   // that are taken
    double tokens_per_byte = 0;            // as the data tells it; 0: it does not
  };
  /// What the windows' inputs are, their last token aside.
  struct ByteCount {
    double tokens = 0, bytes = 0;
    std::string unknown;  // why the bytes are
  };

  EntryLoss evaluate(const Entry& entry, const LossesOf& losses_of, ByteCount& counted) const;
  void add_losses(std::span<const Batch> batches, const LossesOf& losses_of, EntryLoss& to) const;
  void count(const Entry& entry, std::span<const int32_t> ids, ByteCount& counted) const;

  LoaderOptions options_;
  size_t at_once_;  // batches
  std::vector<Entry> entries_;
  int64_t all_windows_;
  std::vector<int32_t> text_lengths_;  // of the tokenizer's ids; empty: there is none
};

}  // namespace tokamak
