// The data of a training run: its loader, what a checkpoint keeps of it, and the ledger of what was used.
// Tests: tests/e2e/data_run_test.cpp.
#pragma once

#include "config/config.h"
#include "data/loader.h"
#include "train/checkpoint.h"

#include <memory>
#include <optional>
#include <string>

namespace tokamak {

class RunData {
 public:
  /// Opens the data of a run; `found`: where it goes on. UserErrors: bad data, data that changed since the run began,
  /// another vocabulary, samples of text wanted without a tokenizer.
  RunData(const RunConfig& config, const FoundCheckpoint* found);

  Loader& loader() { return loader_; }
  /// Null where the data has none.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// The data to validate on; null: there is none.
  std::shared_ptr<const Corpus> open_validation() const;

  /// Fills in what a checkpoint needs of the data, after `position` samples.
  void describe(CheckpointState& state, int64_t position) const;

  /// Ledger: the run goes on from `step`, at `sample`; the run before is known to have reached step `reached`.
  void started(int64_t step, int64_t sample, int64_t reached);
  /// Ledger: everything up to `step` is saved.
  void saved(int64_t step, int64_t sample);
  /// Ledger: the process ends as it should.
  void ended(int64_t step, int64_t sample);

 private:
  void write(LedgerLine::Event event, int64_t step, int64_t sample, int64_t reached);

  RunConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Corpus> corpus_;
  DataRecord record_;
  std::string record_json_;
  int64_t samples_per_step_;
  Loader loader_;
  std::unique_ptr<LedgerWriter> ledger_;
};

}  // namespace tokamak
