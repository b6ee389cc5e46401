// `tokamak prepare` as a function: text to token shards with a train and a validation split, and the tokenizer beside
// them. For examples see tests/data/prepare_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/open_source.h"
#include "data/shard_index.h"

namespace tokamak {

struct PrepareOptions {
  std::vector<std::string> inputs;  // as find_files() takes them
  SourceOptions sources;
  std::filesystem::path out = "data";
  std::filesystem::path vocab;         // folder with a tokenizer; empty: one is trained
  int64_t vocab_size = 4096;           // of the trained one
  double val_fraction = 0.05;          // of all tokens, at least 0 and below 1
  int64_t shard_tokens = 100'000'000;  // tokens in one shard at most
};

/// How far it is; given now and then.
struct PrepareProgress {
  std::string_view phase;  // what is being done
  int64_t done = 0;        // bytes, or tokens when writing
  int64_t total = 0;       // 0: not known
};

/// Reads the documents, trains a tokenizer if none is given, and writes train_*.bin, val_*.bin, the tokenizer's files
/// and index.json, which it returns. Documents are separated by <|endoftext|>. Validation gets the last `val_fraction`
/// of the tokens, beginning at the document border nearest to it, or inside a document if none is near. Files appear
/// under their names only when all are written, index.json last. A full disk, a folder that cannot be written and every
/// fault of the input is a UserError; what was in the folder before stays usable.
ShardIndex prepare(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress = {});

/// The token at which validation begins, for `total` tokens of documents that begin at `starts` (ascending, the first
/// is 0): total - val_fraction * total, moved to the nearest document border if that changes the size of the
/// validation part by half at most.
int64_t split_point(int64_t total, const std::vector<int64_t>& starts, double val_fraction);

}  // namespace tokamak
