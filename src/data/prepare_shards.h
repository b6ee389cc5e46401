// The output of `prepare`: encoded batches to shards in the folder of unfinished work, then the cut into two splits.
// Tests: tests/data/prepare_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/int64_log.h"
#include "data/prepare_draw.h"
#include "data/prepare_journal.h"
#include "data/token_shard_index.h"
#include "data/tokenizer.h"

namespace tokamak {

/// Writes the stream of tokens to shards of `shard_tokens` each and the journal after each of them.
class PrepareShards {
 public:
  /// Goes on after what the journal tells. `marked`: ids have marks (data/marked_tokens.h).
  PrepareShards(std::filesystem::path folder, PrepareJournal journal, const Tokenizer& tokenizer, int64_t shard_tokens,
                bool marked = false);

  /// Takes the next batch, whose ids begin at the places of its parts.
  void append(const PrepareBatch& batch);

  /// After the last batch: the last shard, which may be shorter.
  void finish();

  const PrepareJournal& journal() const { return journal_; }
  bool marked() const { return marked_; }
  int64_t tokens() const { return tokens_; }

  /// Where documents begin (with their separators), and where the tokens of each file do; after finish().
  std::span<const int64_t> documents() { return documents_.view(); }
  std::span<const int64_t> files() { return files_.view(); }

  /// Bytes of text that ids stand for; none for markers.
  int64_t text_bytes(std::span<const int32_t> ids) const;

 private:
  void write(std::span<const int32_t> ids);
  void close_shard();

  std::filesystem::path folder_;
  PrepareJournal journal_;
  std::vector<int32_t> lengths_;  // of each token's text, in bytes
  int32_t separator_;
  bool marked_;
  int token_bytes_;
  int64_t shard_tokens_;
  int64_t tokens_ = 0;
  std::optional<TokenShardWriter> writer_;
  int64_t in_shard_ = 0;
  Int64Log documents_, files_;
};

/// Cuts finished shards into train and val at token `split`, inside `folder`: fills in the shards and counts of the
/// index, writes what has to be cut anew and says which files get which names.
std::vector<PrepareJournal::Move> cut_splits(const std::filesystem::path& folder, PrepareShards& shards, int64_t split,
                                             int64_t shard_tokens, TokenShardIndex& index,
                                             const std::function<void()>& pause);

/// The same where documents are drawn: all tokens are written once more, each behind those before it of its split.
std::vector<PrepareJournal::Move> cut_drawn(const std::filesystem::path& folder, PrepareShards& shards,
                                            const ValidationDraw& draw, int64_t shard_tokens, TokenShardIndex& index,
                                            const std::function<void()>& pause);

}  // namespace tokamak
