#include "data/chat_template_lexer.h"

#include <algorithm>

#include "base/error.h"
#include "data/chat_template.h"

namespace tokamak {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

constexpr size_t kMostWords = 1000;  // of a tag: trees are as deep as chains of operators are long

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : left_(source), name_(name) {}

  std::vector<TemplatePiece> split() {
    while (!left_.empty()) {
      size_t open = find_open();
      add_text(left_.substr(0, open), open < left_.size() ? left_.substr(open, 3) : "");
      take(open);
      if (!left_.empty()) take_tag();
    }
    return std::move(pieces_);
  }

 private:
  size_t find_open() const {
    size_t at = 0;
    for (; at < left_.size(); ++at)
      if (left_[at] == '{' && at + 1 < left_.size() && std::string_view("{%#").find(left_[at + 1]) != left_.npos) break;
    return at;
  }

  // `next` is how the tag behind it begins.
  void add_text(std::string_view text, std::string_view next) {
    if (strip_left_) {
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    } else if (trim_newline_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (next.size() == 3 && next[2] == '-') {
      while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    } else if (next.starts_with("{%") || next.starts_with("{#")) {
      size_t end = text.find_last_not_of(" \t");
      bool is_indent = end == text.npos ? at_line_begin_ : text[end] == '\n';
      if (is_indent && !(next.size() == 3 && next[2] == '+')) text = text.substr(0, end == text.npos ? 0 : end + 1);
    }
    if (!text.empty()) pieces_.push_back({TemplatePiece::Kind::kText, std::string(text), {}, line_});
  }

  void take_tag() {
    char kind = left_[1];
    std::string_view close = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    TemplatePiece piece{kind == '{' ? TemplatePiece::Kind::kPrint : TemplatePiece::Kind::kStatement, "", {}, line_};
    take(2);
    if (left_.starts_with('-') || left_.starts_with('+')) take(1);
    bool strips = kind == '#' ? take_comment(close) : take_words(close, piece.words);
    // A tag of statements or a comment takes the line break behind it.
    strip_left_ = strips;
    trim_newline_ = kind != '{';
    at_line_begin_ = trim_newline_ && left_.starts_with('\n');
    if (kind == '#') return;
    piece.words.emplace_back();
    pieces_.push_back(std::move(piece));
  }

  bool take_comment(std::string_view close) {
    size_t end = left_.find(close);
    if (end == left_.npos) refuse("a comment that ends with #}");
    bool strips = end > 0 && left_[end - 1] == '-';
    take(end + close.size());
    return strips;
  }

  bool take_words(std::string_view close, std::vector<TemplateWord>& words) {
    for (;;) {
      while (!left_.empty() && is_space(left_.front())) take(1);
      if (left_.empty()) refuse(fmt::format("a tag that ends with {}", close));
      bool strips = left_.front() == '-' && left_.substr(1).starts_with(close);
      if (strips || left_.starts_with(close)) {
        take(close.size() + (strips ? 1 : 0));
        return strips;
      }
      words.push_back(take_word());
      if (words.size() > kMostWords) refuse(fmt::format("at most {} words in a tag", kMostWords));
    }
  }

  TemplateWord take_word() {
    char first = left_.front();
    if (first == '\'' || first == '"') return {TemplateWord::Kind::kString, take_string()};
    size_t size = 1;
    if (is_name(first)) {
      while (size < left_.size() && is_name(left_[size])) ++size;
      bool is_number = is_digit(first);
      return {is_number ? TemplateWord::Kind::kNumber : TemplateWord::Kind::kName, take(size)};
    }
    for (std::string_view sign : {"==", "!=", "<=", ">=", "//", "**"})
      if (left_.starts_with(sign)) size = 2;
    return {TemplateWord::Kind::kSign, take(size)};
  }

  std::string take_string() {
    char quote = left_.front();
    std::string text;
    size_t at = 1;
    for (; at < left_.size() && left_[at] != quote; ++at) {
      if (left_[at] != '\\') {
        text += left_[at];
        continue;
      }
      if (++at == left_.size()) break;
      constexpr std::string_view kLetters = "nrt\\'\"", kMeanings = "\n\r\t\\'\"";
      size_t letter = kLetters.find(left_[at]);
      if (letter == kLetters.npos)
        refuse(fmt::format("\\n, \\r, \\t, \\\\ or a quote in a string, not \\{}", left_[at]));
      text += kMeanings[letter];
    }
    if (at >= left_.size()) refuse("a string with its quote at the end");
    take(at + 1);
    return text;
  }

  std::string take(size_t size) {
    std::string taken(left_.substr(0, size));
    line_ += size_t(std::count(taken.begin(), taken.end(), '\n'));
    left_.remove_prefix(size);
    return taken;
  }

  [[noreturn]] void refuse(std::string_view expected) const {
    user_error("[chat] {} line {}: expected {}; {}", name_, line_, expected, kOtherTemplate);
  }

  std::string_view left_, name_;
  std::vector<TemplatePiece> pieces_;
  size_t line_ = 1;
  bool strip_left_ = false, trim_newline_ = false;
  bool at_line_begin_ = true;  // what comes begins a line
};

}  // namespace

std::vector<TemplatePiece> split_chat_template(std::string_view source, std::string_view name) {
  return Lexer(source, name).split();
}

}  // namespace tokamak
