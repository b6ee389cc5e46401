#include "cli/completion.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/printable.h"
#include "data/visible_text.h"

namespace tokamak {
namespace {

// Of the bytes at the end those of a UTF-8 character that is not whole yet.
size_t unfinished(const std::string& text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    auto byte = uint8_t(text[text.size() - back]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;  // inside a character
    size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

void print_now(const std::string& text) {
  std::string shown = shown_text(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::string shown_text(std::string text) { return ::isatty(STDOUT_FILENO) == 1 ? printable(text) : text; }

void Completion::stream(bool with_prompt) {
  streams_ = true;
  if (with_prompt) print_now(prompt_);
}

void Completion::write() {
  if (!streams_) return;
  size_t whole = text_.size() - unfinished(text_);
  if (whole <= written_) return;
  print_now(text_.substr(written_, whole - written_));
  written_ = whole;
}

bool Completion::add(int32_t token, double log_probability) {
  if (token == tokenizer_.end_of_text()) {
    finish_ = "document";
    return false;
  }
  tokens_.push_back(token);
  log_probabilities_.push_back(log_probability);
  text_ += stops_.add(visible_text(tokenizer_, {&token, 1}));
  write();
  if (stops_.found()) finish_ = "stop";
  return !stops_.found();
}

void Completion::end() {
  text_ += stops_.rest();
  if (!streams_) return;
  print_now(text_.substr(written_) + "\n");
  written_ = text_.size();
}

std::string Completion::json(int64_t prompt_tokens, int64_t kept_tokens, bool with_log_probabilities,
                             double seconds) const {
  nlohmann::ordered_json line = {{"prompt", prompt_},
                                 {"text", text_},
                                 {"finish", finish_},
                                 {"seed", seed_},
                                 {"prompt_tokens", prompt_tokens},
                                 {"kept_prompt_tokens", kept_tokens},
                                 {"tokens", tokens_}};
  if (with_log_probabilities) line["log_probabilities"] = log_probabilities_;
  line["seconds"] = seconds;
  line["tokens_per_second"] = seconds > 0 ? double(tokens_.size()) / seconds : 0;
  return format_json(line);
}

}  // namespace tokamak
