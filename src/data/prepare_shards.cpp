#include "data/prepare_shards.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/marked_tokens.h"
#include "data/prepare_names.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kPartTokens = int64_t(1) << 18;

int64_t count_before(std::span<const int64_t> ascending, int64_t end) {
  return std::lower_bound(ascending.begin(), ascending.end(), end) - ascending.begin();
}

/// Tokens to the shards of one split, of which it is known how many there will be.
class SplitWriter {
 public:
  SplitWriter(fs::path folder, const char* name, int64_t tokens, int64_t shard_tokens, int token_bytes, bool marked)
      : folder_(std::move(folder)), name_(name), left_(tokens), shard_tokens_(shard_tokens), token_bytes_(token_bytes),
        marked_(marked) {}

  void append(std::span<const int32_t> ids, SplitIndex& to, std::vector<PrepareJournal::Move>& moves) {
    while (!ids.empty()) {
      if (!writer_) {
        in_shard_ = std::min(left_, shard_tokens_);
        writer_.emplace(folder_ / shard_name(name_, to.shards.size()), in_shard_, token_bytes_, marked_);
      }
      auto taken = ids.first(std::min(ids.size(), size_t(in_shard_)));
      writer_->append(taken);
      in_shard_ -= int64_t(taken.size());
      left_ -= int64_t(taken.size());
      ids = ids.subspan(taken.size());
      if (in_shard_ == 0) close(to, moves);
    }
  }

 private:
  void close(SplitIndex& to, std::vector<PrepareJournal::Move>& moves) {
    to.shards.push_back(writer_->finish());
    writer_->commit();
    writer_.reset();
    moves.push_back({to.shards.back().file, to.shards.back().file, to.shards.back().checksum});
  }

  fs::path folder_;
  const char* name_;
  int64_t left_, shard_tokens_;
  int token_bytes_;
  bool marked_;
  std::optional<TokenShardWriter> writer_;
  int64_t in_shard_ = 0;  // that are still to come in this one
};

}  // namespace

PrepareShards::PrepareShards(fs::path folder, PrepareJournal journal, const Tokenizer& tokenizer, int64_t shard_tokens,
                             bool marked)
    : folder_(std::move(folder)), journal_(std::move(journal)), lengths_(text_lengths(tokenizer.vocabulary())),
      separator_(tokenizer.end_of_text()), marked_(marked),
      token_bytes_(shard_token_bytes(tokenizer.vocab_size(), marked)), shard_tokens_(shard_tokens),
      documents_(folder_ / unfinished::kDocuments, journal_.documents),
      files_(folder_ / unfinished::kFiles, journal_.files) {
  for (const TokenShardInfo& shard : journal_.shards) tokens_ += shard.tokens;
}

int64_t PrepareShards::text_bytes(std::span<const int32_t> ids) const {
  int64_t bytes = 0;
  for (int32_t id : ids) bytes += lengths_[size_t(id_of(id))];
  return bytes;
}

void PrepareShards::append(const PrepareBatch& batch) {
  std::span<const int32_t> ids = batch.ids;
  for (const PrepareBatch::Part& part : batch.parts) {
    while (files_.size() <= part.place.file) files_.append(tokens_);
    journal_.place = part.place;
    for (auto left = ids.first(part.ids); !left.empty();) {
      auto taken = left.first(std::min(left.size(), size_t(shard_tokens_ - in_shard_)));
      write(taken);
      left = left.subspan(taken.size());
      journal_.place.tokens += int64_t(taken.size());
      if (in_shard_ == shard_tokens_) close_shard();
    }
    ids = ids.subspan(part.ids);
  }
}

void PrepareShards::write(std::span<const int32_t> ids) {
  if (!writer_)
    writer_.emplace(folder_ / shard_name(unfinished::kTokens, journal_.shards.size()), shard_tokens_, token_bytes_,
                    marked_);
  if (tokens_ == 0 && ids[0] != separator_) documents_.append(0);
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == separator_) documents_.append(tokens_ + int64_t(i));
  writer_->append(ids);
  journal_.text_bytes += text_bytes(ids);
  tokens_ += int64_t(ids.size());
  in_shard_ += int64_t(ids.size());
}

void PrepareShards::close_shard() {
  journal_.shards.push_back(writer_->finish());
  writer_->commit();
  writer_.reset();
  in_shard_ = 0;
  journal_.documents = documents_.sync();
  journal_.files = files_.sync();
  write_journal(journal_, folder_);
}

void PrepareShards::finish() {
  if (writer_) close_shard();
}

std::vector<PrepareJournal::Move> cut_splits(const fs::path& folder, PrepareShards& shards, int64_t split,
                                             int64_t shard_tokens, TokenShardIndex& index,
                                             const std::function<void()>& pause) {
  const PrepareJournal& journal = shards.journal();
  TokenStream tokens(folder, {.shards = journal.shards});
  std::vector<PrepareJournal::Move> moves;
  auto add = [&](SplitIndex& to, const char* name, TokenShardInfo info) {
    std::string from = std::exchange(info.file, shard_name(name, to.shards.size()));
    moves.push_back({from, info.file, info.checksum});
    to.shards.push_back(info);
  };
  /// Copies tokens into new shards; gives the bytes of their text.
  auto copy = [&](SplitIndex& to, const char* name, int64_t begin, int64_t end) {
    int64_t bytes = 0;
    std::vector<int32_t> ids;
    while (begin < end) {
      int64_t shard_end = std::min(end, begin + shard_tokens);
      TokenShardWriter writer(folder / shard_name(name, to.shards.size()), shard_end - begin,
                              shard_token_bytes(index.vocab_size, shards.marked()), shards.marked());
      for (; begin < shard_end; begin += int64_t(ids.size())) {
        ids.resize(size_t(std::min(kPartTokens, shard_end - begin)));
        tokens.read(begin, ids);
        writer.append(ids);
        bytes += shards.text_bytes(ids);
        pause();
      }
      add(to, name, writer.finish());
      writer.commit();
    }
    return bytes;
  };
  int64_t whole = 0;  // tokens in shards that stay as they are
  for (const TokenShardInfo& shard : journal.shards) {
    if (whole + shard.tokens > split) break;
    add(index.train, "train", shard);
    whole += shard.tokens;
  }
  copy(index.train, "train", whole, split);
  index.val.text_bytes = copy(index.val, "val", split, tokens.size());
  index.train.text_bytes = journal.text_bytes - index.val.text_bytes;
  index.train.documents = count_before(shards.documents(), split);
  index.val.documents = int64_t(shards.documents().size()) - index.train.documents;
  return moves;
}

std::vector<PrepareJournal::Move> cut_drawn(const fs::path& folder, PrepareShards& shards, const ValidationDraw& draw,
                                            int64_t shard_tokens, TokenShardIndex& index,
                                            const std::function<void()>& pause) {
  int64_t val_tokens = 0;
  draw.for_each([&](const DrawnRun& run) { val_tokens += run.is_val ? run.end - run.begin : 0; });
  TokenStream tokens(folder, {.shards = shards.journal().shards});
  int token_bytes = shard_token_bytes(index.vocab_size, shards.marked());
  SplitWriter train(folder, "train", tokens.size() - val_tokens, shard_tokens, token_bytes, shards.marked());
  SplitWriter val(folder, "val", val_tokens, shard_tokens, token_bytes, shards.marked());
  std::vector<PrepareJournal::Move> moves;
  std::vector<int32_t> ids;
  draw.for_each([&](const DrawnRun& run) {
    SplitIndex& to = run.is_val ? index.val : index.train;
    to.documents += run.documents;
    for (int64_t begin = run.begin; begin < run.end; begin += int64_t(ids.size())) {
      ids.resize(size_t(std::min(kPartTokens, run.end - begin)));
      tokens.read(begin, ids);
      (run.is_val ? val : train).append(ids, to, moves);
      to.text_bytes += shards.text_bytes(ids);
      pause();
    }
  });
  return moves;
}

}  // namespace tokamak
