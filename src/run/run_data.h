// The data of a training run: its loader, what a checkpoint keeps of it, and the ledger of what was used.
// Tests: tests/e2e/data_run_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "compile/resolved_run.h"
#include "data/loader.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

class RunData {
 public:
  /// Opens the data of a run; `found`: where it goes on; `records`: whether to keep the ledger. UserErrors: bad data,
  /// data that changed since the run began, another vocabulary, samples of text wanted without a tokenizer.
  RunData(const ResolvedRun& run, const FoundCheckpoint* found, bool records = true);

  /// Throws the same UserErrors, and one for tokens that the model's vocabulary lacks, as far as a few windows of each
  /// entry tell it. Nothing is read whole. The windows of the training data.
  static int64_t check(const RunConfig& config, const FoundCheckpoint* found);

  Loader& loader() { return loader_; }
  /// Null where the data has none.
  const Tokenizer* tokenizer() const { return opened_.tokenizer.get(); }
  /// Tokens of one pass over the data.
  int64_t epoch_tokens() const { return opened_.training->windows() * opened_.training->context(); }
  /// What a sample of text continues, which training has seen the model continue: the end of a document, or a line
  /// break where the data has next to none. Needs a tokenizer.
  std::vector<int32_t> sample_prompt() const;
  /// The vocabulary that the training data needs; 0: not known.
  int64_t needed_vocab() const { return opened_.training->needed_vocab(); }
  /// The data to validate on; null: there is none, or no validation is wanted.
  std::shared_ptr<const Corpus> validation() const { return opened_.validation; }

  /// What was noticed when the data was opened and a user should know: sentences.
  std::vector<std::string> notes() const;

  /// Returns when all training data used so far is known to be undamaged, where an index tells it; a UserError names
  /// the file that is not. To be called before a state is saved that follows from it.
  void verify_used() const { opened_.training->verify_used(); }

  /// Fills in what a checkpoint needs of the data, after `position` samples.
  void describe(CheckpointState& state, int64_t position) const;

  /// What each checkpoint has for other programs (CheckpointState::for_others), made when it is first asked for: of a
  /// large vocabulary it takes a while.
  const std::map<std::string, std::string>& files_for_others() const;

  /// What the run is trained on, as text: the same on all ranks.
  const std::string& description() const { return record_json_; }

  /// Ledger: the run goes on from `step`, at `sample`; the run before is known to have reached step `reached`.
  void started(int64_t step, int64_t sample, int64_t reached);
  /// Ledger: everything up to `step` is saved.
  void saved(int64_t step, int64_t sample);
  /// Ledger: the process ends as it should.
  void ended(int64_t step, int64_t sample);

 private:
  /// All of it as it was at one moment.
  struct Opened {
    std::shared_ptr<const Tokenizer> tokenizer;
    std::shared_ptr<const Corpus> training, validation;
  };
  static Opened open(const RunConfig& config, const FoundCheckpoint* found, bool verify);
  void write(LedgerLine::Event event, int64_t step, int64_t sample, int64_t reached);

  RunConfig config_;
  bool records_;
  Opened opened_;
  DataRecord record_;
  std::string record_json_;
  std::string fingerprint_;                      // of the tokenizer
  std::string validation_, validation_warning_;  // checksum; what is said where it was another one
  std::string follows_;                          // what the checkpoint has of the ledger that the run goes on from
  int64_t samples_per_step_;
  Loader loader_;
  std::unique_ptr<LedgerWriter> ledger_;
  mutable std::optional<std::map<std::string, std::string>> for_others_;
};

}  // namespace tokamak
