// Whether tokens are in the model's vocabulary: a damaged file must not become an index out of an embedding table.
// Tests: tests/data/loader_test.cpp, tests/errors/cli_early_test.cpp.
#pragma once

#include "data/corpus.h"

namespace tokamak {

/// `marked`: tokens may have marks. Of tokens that were read from a window; a UserError names the file and the place of
/// one that the vocabulary lacks.
void check_tokens(WindowReader& reader, int64_t window, std::span<const int32_t> tokens, int64_t vocab_size,
                  bool marked = false);

/// Of a few windows, from the first to the last, of each dataset that knows no vocabulary: what is of another one shows
/// itself there.
void check_some_tokens(const Corpus& corpus, int64_t vocab_size);

}  // namespace tokamak
