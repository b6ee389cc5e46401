// Conversations, and the tokenizer of a model for them.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "data/bpe_trainer.h"
#include "data/tokenizer_files.h"

namespace tokamak::test {

inline constexpr int kTalks = 40;

/// The user's text of a conversation, and the answer.
inline std::string question_of(int talk) { return "say " + std::string(size_t(talk % 7 + 1), 'q'); }
inline std::string answer_of(int talk) { return std::string(size_t(talk % 5 + 1), 'a'); }

/// Makes <folder>/tokenizer, bytes and the markers of ChatML, and <folder>/talk.jsonl.
inline void make_talk(const std::filesystem::path& folder) {
  Vocabulary vocabulary = train_bpe(WordCounts(), kMinVocabulary);
  for (const char* marker : {"<|im_start|>", "<|im_end|>"}) {
    auto id = int32_t(vocabulary.tokens.size());
    vocabulary.tokens.emplace_back(marker);
    vocabulary.special.push_back(id);
    vocabulary.added.push_back({.id = id});
  }
  make_folder(folder / "tokenizer");
  save_tokenizer(vocabulary, folder / "tokenizer");
  std::string lines;
  for (int i = 0; i < kTalks; ++i)
    lines += R"({"messages": [{"role": "user", "content": ")" + question_of(i) +
             R"("}, {"role": "assistant", "content": ")" + answer_of(i) + "\"}]}\n";
  write_file_atomic(folder / "talk.jsonl", lines);
}

}  // namespace tokamak::test
