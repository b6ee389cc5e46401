// `tokamak prepare` as a function: documents to token shards with a train and a validation split, and the tokenizer
// beside them. Documents stream through: memory does not grow with the input, and the work is done by all threads with
// the same result for any number of them. For examples see tests/data/prepare_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/open_source.h"
#include "data/token_shard_index.h"

namespace tokamak {

struct PrepareOptions {
  std::vector<std::string> inputs;  // as find_files() takes them
  SourceOptions sources;
  std::string
      chat;  // objects of JSON are conversations (data/conversation.h): own, chatml, llama3 or pairs; empty: not
  std::string split;      // train, validation or test: only files whose names say so (data/split_names.h); empty: all
  bool skip_bad = false;  // lines of JSONL that have no text, and uneven rows of CSV, are counted, and no errors
  std::filesystem::path out = "data";
  std::filesystem::path vocab;             // a tokenizer as load_tokenizer() takes it; empty: one is trained
  int64_t vocab_size = 4096;               // of the trained one
  int64_t vocab_bytes = int64_t(1) << 30;  // of text that it is trained on, from the beginnings of all files; 0: all
  int64_t vocab_words = int64_t(8) << 20;  // different words that are counted for it; the rarest are forgotten
  double val_fraction = 0.05;              // of all tokens, at least 0 and below 1
  std::string val_split = "auto";      // where they are from: end, drawn; auto: drawn where that gives enough pieces
  int64_t val_seed = 1337;             // of what is drawn
  int64_t shard_tokens = 100'000'000;  // tokens in one shard at most
  int threads = 0;                     // 0: all cores
  int64_t batch_bytes = int64_t(1) << 20;  // of documents that a thread works on at a time
};

/// How far it is; given now and then.
struct PrepareProgress {
  std::string_view phase;  // what is being done
  int64_t done = 0;        // bytes of the input, or files of it
  int64_t total = 0;       // 0: not known
  bool files = false;      // that are counted
};

/// What the caller hears and says while it goes on; each may be left out.
struct PrepareHooks {
  std::function<void(const PrepareProgress&)> progress;
  std::function<void(const std::string&)> note;  // a sentence that the user should see
  std::function<bool()> stop;                    // true: to end soon, with a UserError that says how to go on
};

/// Reads the documents, trains a tokenizer if none is given, and writes train_*.bin, val_*.bin, the tokenizer's files
/// and index.json, which it returns. Documents are separated by <|endoftext|>; documents of tokens are copied, and are
/// not separated twice. Validation gets `val_fraction` of the tokens: documents, and pieces of long ones, that are
/// drawn from all of them (data/prepare_draw.h), or the last ones, beginning at the document border nearest to that, or
/// inside a document if none is near.
///
/// Everything grows in the folder kUnfinishedFolder, and a data set that was in the output folder stays usable until it
/// is replaced, at the very end. When it is interrupted, in whatever way, the same call goes on after the last complete
/// shard and gives the same bytes; other options or changed files begin anew. A full disk, a folder that cannot be
/// written and every fault of the input is a UserError.
TokenShardIndex prepare(const PrepareOptions& options, const PrepareHooks& hooks = {});

/// The token at which validation begins, for `total` tokens of documents that begin at `starts` (ascending):
/// total - val_fraction * total, moved to the nearest document border if that changes the size of the validation part
/// by half at most.
int64_t split_point(int64_t total, std::span<const int64_t> starts, double val_fraction);

}  // namespace tokamak
