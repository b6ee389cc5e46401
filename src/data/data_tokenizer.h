// The tokenizer of a run's data. Tests: tests/data/corpus_test.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/tokenizer.h"

namespace tokamak {

struct DataConfig;
struct RunConfig;

/// Differs for tokenizers that differ; checkpoints hold it, to tell whether a run goes on with its vocabulary.
std::string tokenizer_fingerprint(const Tokenizer& tokenizer);

/// The tokenizer of data.tokenizer, or else of the first folder made by `prepare` among the entries of data.path; null
/// if there is neither. UserError when folders of the mixture were made with different ones.
std::shared_ptr<const Tokenizer> load_data_tokenizer(const DataConfig& config);

/// The vocabulary of the data, else of its tokenizer; nothing when neither is known.
std::optional<int64_t> find_data_vocab(const DataConfig& data);

/// The configuration with model.vocab filled in where it is 0: the vocabulary of the data, else of its tokenizer.
/// UserError when neither is known.
RunConfig with_data_vocab(RunConfig config);

}  // namespace tokamak
