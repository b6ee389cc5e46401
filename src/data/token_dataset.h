// Datasets of tokens that exist already: folders made by `prepare`, and files of tokens. N tokens are W = (N - 1) / T
// windows of T + 1 tokens, each beginning with the last token of the one before. Tests:
// tests/data/token_dataset_test.cpp.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "data/token_shard_index.h"

namespace tokamak {

/// One split of a data folder. With `verify` each shard is read whole in the background once it was used, and its
/// checksum compared: see Dataset::verify_used(). UserErrors: shards that do not fit the index, fewer than T + 1
/// tokens.
std::unique_ptr<Dataset> open_prepared(const std::filesystem::path& folder, const TokenShardIndex& index,
                                       const SplitIndex& split, int64_t context, bool verify = false);

/// Tokens of any container. `path` is what the user named. UserError: fewer than T + 1 tokens.
std::unique_ptr<Dataset> make_token_dataset(std::string path, std::shared_ptr<const TokenArray> tokens,
                                            int64_t context);

}  // namespace tokamak
