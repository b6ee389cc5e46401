// One text that `generate` makes: printed while it grows, or as a line of JSON when it is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "data/stop_strings.h"
#include "data/tokenizer.h"

namespace tokamak {

class Completion {
 public:
  using Clock = std::chrono::steady_clock;

  Completion(const Tokenizer& tokenizer, std::string prompt, int64_t seed, const std::vector<std::string>& stops)
      : tokenizer_(tokenizer), prompt_(std::move(prompt)), seed_(seed), stops_(stops) {}

  /// Printed as it comes from now on, beginning with its prompt where that is wanted.
  void stream(bool with_prompt);
  /// A token more; false: the text is over, and the token may be no part of it.
  bool add(int32_t token, double log_probability);
  /// No more tokens come.
  void end();

  const std::string& prompt() const { return prompt_; }
  const std::string& text() const { return text_; }  // without the prompt
  size_t num_tokens() const { return tokens_.size(); }
  /// For programs: prompt, text, why it ended, tokens, and where they are wanted their log-probabilities.
  std::string json(int64_t prompt_tokens, int64_t kept_tokens, bool with_log_probabilities, double seconds) const;

 private:
  void write();

  const Tokenizer& tokenizer_;
  std::string prompt_;
  int64_t seed_;
  StopStrings stops_;
  std::string text_;
  std::vector<int32_t> tokens_;
  std::vector<double> log_probabilities_;
  const char* finish_ = "length";
  bool streams_ = false;
  size_t written_ = 0;  // bytes of the text
};

/// What a model writes can be what a terminal would obey; elsewhere it is written as it is.
std::string shown_text(std::string text);

}  // namespace tokamak
