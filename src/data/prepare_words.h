// The tokenizer that `prepare` trains: its words are counted by all threads, with bounds on text and memory.
// Tests: tests/data/prepare_words_test.cpp.
#pragma once

#include <filesystem>
#include <vector>

#include "data/bpe_trainer.h"
#include "data/prepare.h"

namespace tokamak {

/// Counts the words of about options.vocab_bytes of text: the beginnings of the files, in proportion to their sizes. As
/// soon as there are more than options.vocab_words different ones, the rarer half is forgotten. The same for any number
/// of threads. A UserError for documents that are tokens already.
WordCounts count_words(const std::vector<std::filesystem::path>& files, const PrepareOptions& options,
                       const PrepareHooks& hooks);

}  // namespace tokamak
