#include "data/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <vector>

#include "base/error.h"
#include "data/byte_alphabet.h"
#include "data/key_counts.h"
#include "data/pair_key.h"
#include "data/scan_words.h"

namespace tokamak {

namespace {

constexpr int64_t kMinCount = 2;

/// Left and right each fill only a few of the lower bits of their halves.
struct PairHash {
  size_t operator()(uint64_t pair) const { return pair * 0x9E3779B97F4A7C15u >> 20; }
};

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
      const auto& [symbols, count] = words_[i];
      for (size_t at = 0; at + 1 < symbols.size(); ++at)
        add_pair(pair_key(symbols[at], symbols[at + 1]), count, uint32_t(i));
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
    std::vector<uint32_t> places = std::move(pairs_[pair].words);
    grown_.clear();
    for (uint32_t place : places) merge_in_word(place, pair, result);
    pairs_.erase(pair);
    // Only pairs with the new token can have become more frequent.
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (uint64_t key : grown_) heap_.push({pairs_[key].count, key});
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

  /// Counts a pair of a word and remembers where it is.
  void add_pair(uint64_t pair, int64_t count, uint32_t place) {
    Pair& info = pairs_[pair];
    info.count += count;
    if (info.words.empty() || info.words.back() != place) info.words.push_back(place);
  }

  /// Merges a pair wherever it is in a word, and counts only what changes: its neighbours.
  void merge_in_word(uint32_t place, uint64_t pair, int32_t result) {
    std::vector<int32_t>& symbols = words_[place].symbols;
    int64_t count = words_[place].count;
    size_t kept = 0;
    for (size_t at = 0; at < symbols.size(); ++at) {
      if (at + 1 == symbols.size() || pair_key(symbols[at], symbols[at + 1]) != pair) {
        symbols[kept++] = symbols[at];
        continue;
      }
      auto replace = [&, count = count](uint64_t before, uint64_t after) {  // clang 14 captures no binding by itself
        pairs_[before].count -= count;
        add_pair(after, count, place);
        grown_.push_back(after);
      };
      if (kept > 0) replace(pair_key(symbols[kept - 1], symbols[at]), pair_key(symbols[kept - 1], result));
      if (at + 2 < symbols.size())
        replace(pair_key(symbols[at + 1], symbols[at + 2]), pair_key(result, symbols[at + 2]));
      symbols[kept++] = result;
      ++at;
    }
    symbols.resize(kept);
  }

  std::vector<Word> words_;
  std::unordered_map<uint64_t, Pair, PairHash> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<uint64_t> grown_;  // pairs that the current merge made more frequent
};

}  // namespace

void WordCounts::add(std::string_view text) {
  KeyCounts short_words(text.size() / 16);
  scan_words(Pretokenizer::kGpt2, text, 0, text.size(),
             [&](std::string_view word, WordBlock key) { key_length(key) > 0 ? short_words.add(key) : add(word, 1); });
  short_words.for_each([&](WordBlock key, int64_t count) {
    add({reinterpret_cast<const char*>(&key), key_length(key)}, count);
  });
}

void WordCounts::add(std::string_view word, int64_t count) {
  auto found = counts_.find(word);
  if (found == counts_.end()) found = counts_.emplace(word, 0).first;
  found->second += count;
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
  add_markers(vocabulary);
  return vocabulary;
}

}  // namespace tokamak
