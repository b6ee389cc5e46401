// What a thread of `prepare` does with a batch: text becomes tokens, tokens are checked. Tests:
// tests/data/prepare_reader_test.cpp.
#pragma once

#include <filesystem>
#include <vector>

#include "data/prepare_reader.h"
#include "data/tokenizer.h"

namespace tokamak {

/// One per thread, so no cache line may be shared with the next; tokenizer and files must outlive it.
class alignas(64) PrepareEncoder {
 public:
  /// `files` are for messages. `conversations`: every document is one.
  PrepareEncoder(const Tokenizer& tokenizer, const std::vector<std::filesystem::path>& files,
                 bool conversations = false)
      : files_(files), conversations_(conversations), tokenizer_(tokenizer), encoder_(tokenizer),
        separator_(tokenizer.end_of_text()), vocab_size_(tokenizer.vocab_size()) {}

  /// Fills in the batch's ids; of a conversation those have marks that are not learned. UserErrors name the file: for a
  /// given token outside the vocabulary, and for a document in parts where an added token needs the whole text.
  void encode(PrepareBatch& batch);

 private:
  void check_text(const PrepareBatch::Part& part) const;
  void check(std::span<const int32_t> given, const PrepareBatch::Part& part) const;

  void append_conversation(std::string_view text, std::span<const TextSpan> learned, const PrepareBatch::Part& part,
                           std::vector<int32_t>& ids);

  const std::vector<std::filesystem::path>& files_;
  bool conversations_;
  const Tokenizer& tokenizer_;
  Encoder encoder_;
  int32_t separator_;
  int32_t vocab_size_;
};

}  // namespace tokamak
