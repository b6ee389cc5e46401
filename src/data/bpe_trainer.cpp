#include "data/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <vector>

#include "base/error.h"
#include "data/byte_alphabet.h"
#include "data/pretokenizer.h"

namespace tokamak {

namespace {

constexpr int64_t kMinCount = 2;

uint64_t pair_key(int32_t left, int32_t right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }

class Trainer {
 public:
  Trainer(const WordCounts& words, const std::array<int32_t, 256>& byte_ids) {
    for (const auto& [bytes, count] : words.counts()) {
      if (bytes.size() < 2) continue;
      Word& word = words_.emplace_back();
      word.count = count;
      for (char c : bytes) word.symbols.push_back(byte_ids[uint8_t(c)]);
    }
    for (size_t i = 0; i < words_.size(); ++i) {
      count_pairs(words_[i], +1);
      for (size_t at = 0; at + 1 < words_[i].symbols.size(); ++at) remember_place(words_[i], at, i);
    }
    for (const auto& [pair, info] : pairs_) heap_.push({info.count, pair});
  }

  /// The most frequent pair, as (left, right) in one key; false if none occurs often enough.
  bool best_pair(uint64_t& pair) {
    while (!heap_.empty()) {
      Candidate top = heap_.top();
      heap_.pop();
      auto found = pairs_.find(top.pair);
      if (found == pairs_.end() || found->second.count < kMinCount) continue;
      // Counts that fell since the entry was made are corrected when the entry comes up.
      if (found->second.count != top.count) {
        heap_.push({found->second.count, top.pair});
        continue;
      }
      pair = top.pair;
      return true;
    }
    return false;
  }

  void merge(uint64_t pair, int32_t result) {
    int32_t left = int32_t(pair >> 32), right = int32_t(uint32_t(pair));
    std::vector<uint32_t> places = std::move(pairs_[pair].words);
    std::vector<uint64_t> grown;
    for (uint32_t place : places) {
      Word& word = words_[place];
      count_pairs(word, -1);
      auto& symbols = word.symbols;
      size_t kept = 0;
      for (size_t at = 0; at < symbols.size(); ++at) {
        bool found = at + 1 < symbols.size() && symbols[at] == left && symbols[at + 1] == right;
        symbols[kept++] = found ? result : symbols[at];
        at += found;
      }
      symbols.resize(kept);
      count_pairs(word, +1);
      for (size_t at = 0; at + 1 < symbols.size(); ++at) {
        if (symbols[at] != result && symbols[at + 1] != result) continue;
        remember_place(word, at, place);
        grown.push_back(pair_key(symbols[at], symbols[at + 1]));
      }
    }
    pairs_.erase(pair);
    // Only pairs with the new token can have become more frequent.
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (uint64_t key : grown) heap_.push({pairs_[key].count, key});
  }

 private:
  struct Word {
    std::vector<int32_t> symbols;
    int64_t count = 0;
  };
  struct Pair {
    int64_t count = 0;
    std::vector<uint32_t> words;  // where it occurs or once did
  };
  struct Candidate {
    int64_t count;
    uint64_t pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void count_pairs(const Word& word, int64_t sign) {
    for (size_t at = 0; at + 1 < word.symbols.size(); ++at)
      pairs_[pair_key(word.symbols[at], word.symbols[at + 1])].count += sign * word.count;
  }

  void remember_place(const Word& word, size_t at, size_t place) {
    auto& places = pairs_[pair_key(word.symbols[at], word.symbols[at + 1])].words;
    if (places.empty() || places.back() != place) places.push_back(uint32_t(place));
  }

  std::vector<Word> words_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

void WordCounts::add(std::string_view text) {
  WordEnd word_end = pretokenizer_info(Pretokenizer::kGpt2).word_end;
  for (size_t at = 0; at < text.size();) {
    size_t end = word_end(text, at);
    std::string_view word = text.substr(at, end - at);
    auto found = counts_.find(word);
    if (found == counts_.end()) found = counts_.emplace(word, 0).first;
    ++found->second;
    at = end;
  }
}

void WordCounts::merge(const WordCounts& other) {
  for (const auto& [word, count] : other.counts_) counts_[word] += count;
}

void WordCounts::drop_rare(size_t most) {
  if (counts_.size() <= most) return;
  std::vector<int64_t> descending;
  for (const auto& [word, count] : counts_) descending.push_back(count);
  std::nth_element(descending.begin(), descending.begin() + ptrdiff_t(most), descending.end(), std::greater<>());
  int64_t dropped = descending[most];  // keeping words of this count would keep too many
  std::erase_if(counts_, [&](const auto& word) { return word.second <= dropped; });
}

void check_vocab_size(int64_t vocab_size) {
  if (vocab_size < kMinVocabulary)
    user_error("[tokenizer] expected a vocabulary of at least {} (256 bytes and {}), got {}; raise the vocabulary size",
               kMinVocabulary, kEndOfText, vocab_size);
}

Vocabulary train_bpe(const WordCounts& words, int64_t vocab_size) {
  check_vocab_size(vocab_size);
  Vocabulary vocabulary;
  std::array<int32_t, 256> byte_ids;
  for (uint8_t byte : byte_alphabet_order()) {
    byte_ids[byte] = int32_t(vocabulary.tokens.size());
    vocabulary.tokens.emplace_back(1, char(byte));
  }
  Trainer trainer(words, byte_ids);
  uint64_t pair;
  while (int64_t(vocabulary.tokens.size()) + 1 < vocab_size && trainer.best_pair(pair)) {
    int32_t left = int32_t(pair >> 32), right = int32_t(uint32_t(pair)), result = int32_t(vocabulary.tokens.size());
    trainer.merge(pair, result);
    vocabulary.merges.push_back({left, right, result});
    vocabulary.tokens.push_back(vocabulary.tokens[size_t(left)] + vocabulary.tokens[size_t(right)]);
  }
  vocabulary.special = {int32_t(vocabulary.tokens.size())};
  vocabulary.tokens.emplace_back(kEndOfText);
  return vocabulary;
}

}  // namespace tokamak
