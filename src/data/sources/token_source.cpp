#include "data/sources/token_source.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tokamak {

namespace {

class TokenSource final : public Source {
 public:
  TokenSource(std::string name, std::unique_ptr<TokenArray> tokens, NextLength next, int64_t part_tokens)
      : name_(std::move(name)), tokens_(std::move(tokens)), next_(std::move(next)), part_tokens_(part_tokens) {}

  bool next(Document& document) override {
    while (left_ == 0) {
      std::optional<int64_t> length = next_();
      if (!length) return false;
      left_ = *length;
    }
    buffer_.resize(size_t(std::min(left_, part_tokens_)));
    tokens_->read(at_, buffer_);
    at_ += int64_t(buffer_.size());
    left_ -= int64_t(buffer_.size());
    document = {.text = {}, .tokens = buffer_, .continues = left_ > 0};
    return true;
  }

  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override { return at_ * kBytes; }
  int64_t total_bytes() const override { return tokens_->size() * kBytes; }

 private:
  static constexpr int64_t kBytes = sizeof(int32_t);  // a token, for progress

  std::string name_;
  std::unique_ptr<TokenArray> tokens_;
  NextLength next_;
  int64_t part_tokens_;
  std::vector<int32_t> buffer_;
  int64_t at_ = 0;    // the next token
  int64_t left_ = 0;  // of its document
};

}  // namespace

std::unique_ptr<Source> token_source(const std::filesystem::path& path, std::unique_ptr<TokenArray> tokens,
                                     NextLength next, const SourceOptions& options) {
  int64_t part_tokens = std::max<int64_t>(options.part_bytes / int64_t(sizeof(int32_t)), 1);
  return std::make_unique<TokenSource>(path.string(), std::move(tokens), std::move(next), part_tokens);
}

std::unique_ptr<Source> token_source(const std::filesystem::path& path, std::unique_ptr<TokenArray> tokens,
                                     const SourceOptions& options) {
  auto whole = [length = std::optional(tokens->size())]() mutable { return std::exchange(length, std::nullopt); };
  return token_source(path, std::move(tokens), whole, options);
}

}  // namespace tokamak
