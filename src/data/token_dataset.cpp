#include "data/token_dataset.h"

#include <algorithm>

#include "base/error.h"
#include "data/background_checks.h"
#include "data/fingerprint.h"

namespace tokamak {

namespace {

class TokenWindows : public WindowReader {
 public:
  TokenWindows(std::shared_ptr<const TokenArray> tokens, int64_t context)
      : tokens_(std::move(tokens)), context_(context) {}

  void read(int64_t window, std::span<int32_t> out) override { tokens_->read(window * context_, out); }

  std::vector<FileRange> place(int64_t window) override {
    std::vector<FileRange> ranges;
    for (int64_t at = window * context_, end = at + context_ + 1; at < end;) {
      TokenArray::Place place = tokens_->place(at);
      ranges.push_back({place.path, place.token, std::min(place.left, end - at)});
      at += ranges.back().length;
    }
    return ranges;
  }

 private:
  std::shared_ptr<const TokenArray> tokens_;
  int64_t context_;
};

class TokenDataset : public Dataset {
 public:
  TokenDataset(std::string path, const char* kind, std::shared_ptr<const TokenArray> tokens, int64_t context,
               DatasetFacts facts)
      : path_(std::move(path)), kind_(kind), tokens_(std::move(tokens)), context_(context), facts_(facts) {
    facts_.tokens = tokens_->size();
    facts_.marked = tokens_->is_marked();
    if (facts_.tokens < context + 1)
      user_error("[data] {}: expected at least {} tokens (model.context + 1), got {}; {}prepare more text", path_,
                 context + 1, facts_.tokens,
                 facts_.tokens > 1 ? fmt::format("lower model.context to {} or less, or ", facts_.tokens - 1) : "");
  }

  const std::string& path() const override { return path_; }
  const char* kind() const override { return kind_; }
  int64_t windows() const override { return (facts_.tokens - 1) / context_; }
  std::unique_ptr<WindowReader> reader() const override { return std::make_unique<TokenWindows>(tokens_, context_); }
  DatasetFacts facts() const override { return facts_; }
  std::vector<FileFingerprint> fingerprints() const override { return tokens_->fingerprints(); }
  void verify_used() const override { tokens_->verify_used(); }

 private:
  std::string path_;
  const char* kind_;
  std::shared_ptr<const TokenArray> tokens_;
  int64_t context_;
  DatasetFacts facts_;
};

/// The shards of a split.
class ShardTokens : public TokenArray {
 public:
  ShardTokens(TokenStream stream, const SplitIndex& split, bool verify) : stream_(std::move(stream)) {
    if (!verify) return;
    std::vector<std::function<void()>> checks;
    for (size_t i = 0; i < split.shards.size(); ++i)
      checks.push_back([this, i, info = split.shards[i]] { stream_.shards()[i].verify(info); });
    checks_ = std::make_unique<BackgroundChecks>(std::move(checks));
  }

  int64_t size() const override { return stream_.size(); }
  void read(int64_t begin, std::span<int32_t> out) const override {
    stream_.read(begin, out);
    if (!checks_ || out.empty()) return;
    size_t last = stream_.shard_of(begin + int64_t(out.size()) - 1);
    for (size_t shard = stream_.shard_of(begin); shard <= last; ++shard) checks_->ask(shard);
  }
  bool is_marked() const override {
    return std::any_of(stream_.shards().begin(), stream_.shards().end(),
                       [](const TokenShard& s) { return s.is_marked(); });
  }
  void verify_used() const override {
    if (checks_) checks_->wait();
  }
  Place place(int64_t at) const override {
    TokenStream::Place place = stream_.place(at);
    return {place.shard.path().string(), place.token, place.shard.size() - place.token};
  }
  std::vector<FileFingerprint> fingerprints() const override {
    std::vector<FileFingerprint> prints;
    for (const TokenShard& shard : stream_.shards()) prints.push_back(fingerprint_file(shard.file()));
    return prints;
  }

 private:
  TokenStream stream_;
  std::unique_ptr<BackgroundChecks> checks_;  // last: its thread uses the stream
};

}  // namespace

std::unique_ptr<Dataset> open_prepared(const std::filesystem::path& folder, const TokenShardIndex& index,
                                       const SplitIndex& split, int64_t context, bool verify) {
  DatasetFacts facts{.text_bytes = split.text_bytes,
                     .vocab_size = index.vocab_size,
                     .max_token = split.max_token(),
                     .end_of_text = int32_t(index.end_of_text)};
  auto tokens = std::make_shared<ShardTokens>(TokenStream(folder, split), split, verify);
  return std::make_unique<TokenDataset>(folder.string(), "prepared", std::move(tokens), context, facts);
}

std::unique_ptr<Dataset> make_token_dataset(std::string path, std::shared_ptr<const TokenArray> tokens,
                                            int64_t context) {
  return std::make_unique<TokenDataset>(std::move(path), "tokens", std::move(tokens), context, DatasetFacts());
}

}  // namespace tokamak
