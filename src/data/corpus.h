// All data of a run or of its validation: the datasets of a mixture and the order of their samples. From the
// configuration to windows of tokens. Tests: tests/data/corpus_test.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/ledger_record.h"
#include "data/tokenizer.h"

namespace tokamak {

struct DataConfig;
struct RunConfig;

class Corpus {
 public:
  using Datasets = std::vector<std::shared_ptr<const Dataset>>;

  /// One weight for each dataset. `block`: see mixture_quotas().
  Corpus(Datasets datasets, const std::vector<double>& weights, int64_t context, uint64_t seed,
         int64_t block = kMixtureBlock);

  /// The same with the windows of each dataset in their own order, for validation.
  Corpus sequential() const;

  const Datasets& datasets() const { return datasets_; }
  int64_t context() const { return context_; }  // T
  const SampleOrder& order() const { return order_; }
  /// Windows of all datasets.
  int64_t windows() const;
  /// What fixes the order, with the files' fingerprints.
  DataRecord record() const;
  /// The smallest vocabulary that has all tokens; 0: not known.
  int64_t needed_vocab() const;
  /// The marker between documents, where it is known. UserError when datasets differ in it.
  std::optional<int32_t> end_of_text() const;
  /// Dataset::verify_used() of all.
  void verify_used() const;
  /// Of the mixture; 0 when it is not known of a dataset.
  double tokens_per_byte() const;
  /// What was noticed when its files were opened and a user should know: sentences.
  const std::vector<std::string>& notes() const { return notes_; }
  void set_notes(std::vector<std::string> notes) { notes_ = std::move(notes); }

 private:
  Datasets datasets_;
  int64_t context_;
  SampleOrder order_;
  std::vector<std::string> notes_;
};

/// Opens data.path for training. Text needs a tokenizer; null: there is none. `began`: the data that the run began
/// with, whose bytes per window of text are kept. `verify`: Corpus::verify_used() does something. UserErrors name the
/// entry: not there, of a form that cannot be trained on directly, too short, tokens that model.vocab lacks.
Corpus open_training_data(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                          const DataRecord* began = nullptr, bool verify = false);

/// Opens what is there for validation: data.val_path, or else the val splits of the folders made by `prepare` in
/// data.path. Of a folder in data.val_path the val split is taken, or all of it where it has none. Nothing when there
/// is no validation data or none longer than a window. `verify`: as above.
std::optional<Corpus> open_validation_data(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                           bool verify = false);

/// A sentence for each folder of data.path whose index, made by an earlier version, cannot tell all damage.
std::vector<std::string> checksum_warnings(const DataConfig& config);

/// The marker between documents: data.end_of_text, else the data's, else the tokenizer's; nothing if none is known.
std::optional<int32_t> find_end_of_text(const RunConfig& config, const Corpus& corpus, const Tokenizer* tokenizer);

/// What keeps documents apart: -1 unless data.mask_documents is set, else find_end_of_text(); UserError if it is not
/// known.
int32_t mask_token(const RunConfig& config, const Corpus& corpus, const Tokenizer* tokenizer);

}  // namespace tokamak
