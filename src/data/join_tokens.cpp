#include "data/join_tokens.h"

#include <algorithm>

namespace tokamak {

namespace {

class JoinedTokens : public TokenArray {
 public:
  explicit JoinedTokens(std::vector<std::unique_ptr<TokenArray>> arrays) : arrays_(std::move(arrays)) {
    for (const auto& array : arrays_) ends_.push_back(size() + array->size());
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }

  void read(int64_t begin, std::span<int32_t> out) const override {
    for (size_t i = find(begin); !out.empty(); ++i) {
      size_t count = std::min(out.size(), size_t(ends_[i] - begin));
      arrays_[i]->read(begin - start(i), out.first(count));
      begin += int64_t(count);
      out = out.subspan(count);
    }
  }

  Place place(int64_t at) const override {
    size_t i = find(at);
    return arrays_[i]->place(at - start(i));
  }

  bool is_marked() const override {
    return std::any_of(arrays_.begin(), arrays_.end(), [](const auto& array) { return array->is_marked(); });
  }

  std::vector<FileFingerprint> fingerprints() const override {
    std::vector<FileFingerprint> all;
    for (const auto& array : arrays_)
      for (FileFingerprint& one : array->fingerprints()) all.push_back(std::move(one));
    return all;
  }

 private:
  int64_t start(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

  /// The array that holds a token.
  size_t find(int64_t at) const { return size_t(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin()); }

  std::vector<std::unique_ptr<TokenArray>> arrays_;
  std::vector<int64_t> ends_;  // of the arrays, in tokens of the whole
};

}  // namespace

std::unique_ptr<TokenArray> join_tokens(std::vector<std::unique_ptr<TokenArray>> arrays) {
  return std::make_unique<JoinedTokens>(std::move(arrays));
}

}  // namespace tokamak
