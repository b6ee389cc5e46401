// A slow, obvious backtracking matcher for the regular expressions of tokenizers: the twin of data/pretokenizer.cpp.
// Alternatives, (?:...), (?i:...), (?!...), sets, \s \S \p{..} \r \n, ? * + {1,3}, possessive with a + behind (which
// after {1,3} is tiktoken's reading), and $ as the end of the text.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/characters.h"

namespace tokamak {

class TinyRegex {
 public:
  explicit TinyRegex(std::string_view pattern) : pattern_(pattern) {
    root_ = alternatives(false);
    if (at_ != pattern_.size()) throw std::runtime_error("cannot read the pattern");
  }

  /// The end of the match at `begin`, or npos.
  size_t match(std::string_view text, size_t begin) const {
    size_t end = text.npos;
    root_(text, begin, [&](size_t at) { return end = at, true; });
    return end;
  }

 private:
  using Next = std::function<bool(size_t at)>;
  using Node = std::function<bool(std::string_view text, size_t at, const Next& next)>;
  using Test = std::function<bool(std::string_view character, CharClass kind)>;

  bool take(std::string_view token) {
    bool found = pattern_.substr(at_, token.size()) == token;
    if (found) at_ += token.size();
    return found;
  }

  Node alternatives(bool any_case) {
    std::vector<Node> options;
    do options.push_back(sequence(any_case));
    while (take("|"));
    return [options](std::string_view text, size_t at, const Next& next) {
      for (const Node& option : options)
        if (option(text, at, next)) return true;
      return false;
    };
  }

  Node sequence(bool any_case) {
    Node all = [](std::string_view, size_t at, const Next& next) { return next(at); };
    while (at_ < pattern_.size() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      Node item = repeated(any_case);
      all = [all, item](std::string_view text, size_t at, const Next& next) {
        return all(text, at, [&](size_t middle) { return item(text, middle, next); });
      };
    }
    return all;
  }

  Node repeated(bool any_case) {
    Node item = atom(any_case);
    int least = 1, most = 1;
    if (take("?"))
      least = 0;
    else if (take("*"))
      least = 0, most = 1 << 20;
    else if (take("+"))
      most = 1 << 20;
    else if (take("{1,3}"))
      most = 3;
    else
      return item;
    bool possessive = take("+");
    // Greedy: as many as possible first, then fewer.
    auto greedy = std::make_shared<std::function<bool(std::string_view, size_t, int, const Next&)>>();
    *greedy = [item, least, most, self = greedy.get()](std::string_view text, size_t at, int done, const Next& next) {
      if (done < most && item(text, at, [&](size_t after) { return (*self)(text, after, done + 1, next); }))
        return true;
      return done >= least && next(at);
    };
    return [greedy, possessive](std::string_view text, size_t at, const Next& next) {
      if (!possessive) return (*greedy)(text, at, 0, next);
      size_t end = text.npos;
      return (*greedy)(text, at, 0, [&](size_t found) { return end = found, true; }) && next(end);
    };
  }

  Node atom(bool any_case) {
    if (take("(?i:")) return close(alternatives(true));
    if (take("(?:")) return close(alternatives(any_case));
    if (take("(?!")) {
      Node inner = close(alternatives(any_case));
      return [inner](std::string_view text, size_t at, const Next& next) {
        return !inner(text, at, [](size_t) { return true; }) && next(at);
      };
    }
    if (take("$"))
      return [](std::string_view text, size_t at, const Next& next) { return at == text.size() && next(at); };
    Test test = take("[") ? set(any_case) : one(any_case);
    return [test](std::string_view text, size_t at, const Next& next) {
      if (at >= text.size()) return false;
      Character here = character_at(text, at);
      return test(text.substr(at, here.length), here.kind) && next(at + here.length);
    };
  }

  Node close(Node inner) {
    if (!take(")")) throw std::runtime_error("expected )");
    return inner;
  }

  Test set(bool any_case) {
    bool negated = take("^");
    std::vector<Test> tests;
    while (!take("]")) tests.push_back(one(any_case));
    return [negated, tests](std::string_view character, CharClass kind) {
      for (const Test& test : tests)
        if (test(character, kind)) return !negated;
      return negated;
    };
  }

  static Test of_kinds(CharSet kinds) {
    return [kinds](std::string_view, CharClass kind) { return kinds.has(kind); };
  }

  Test one(bool any_case) {
    using enum CharClass;
    if (take("\\s")) return of_kinds(char_set(kSpace));
    if (take("\\S")) return of_kinds(char_set(kOther, kMark, kUpper, kLower, kLetter, kNumber));
    if (take("\\p{L}")) return of_kinds(char_set(kUpper, kLower, kLetter));
    if (take("\\p{N}")) return of_kinds(char_set(kNumber));
    if (take("\\p{M}")) return of_kinds(char_set(kMark));
    if (take("\\p{Ll}")) return of_kinds(char_set(kLower));
    if (take("\\p{Lu}") || take("\\p{Lt}")) return of_kinds(char_set(kUpper));
    if (take("\\p{Lm}") || take("\\p{Lo}")) return of_kinds(char_set(kLetter));
    char c = take("\\r") ? '\r' : take("\\n") ? '\n' : pattern_[at_++];
    return [c, any_case](std::string_view character, CharClass) {
      bool upper = any_case && c >= 'a' && c <= 'z' && character[0] == c - 'a' + 'A';
      return (character.size() == 1 && (character[0] == c || upper)) || (any_case && c == 's' && character == "\u017F");
    };
  }

  std::string_view pattern_;
  size_t at_ = 0;
  Node root_;
};

}  // namespace tokamak
