// `generate --interactive`: lines that are typed, and the text that they and the answers make together.
#pragma once

#include <functional>
#include <string>

namespace tokamak {

class PromptLoop {
 public:
  /// `set`: for "/set KEY=VALUE"; its UserErrors are told, and the loop goes on.
  explicit PromptLoop(std::function<void(const std::string& setting)> set) : set_(std::move(set)) {}

  /// Until the end of the input or "/quit". `answer` continues a text, which it prints; what it returns becomes part of
  /// the text that the next line goes on from.
  void run(const std::function<std::string(const std::string& text)>& answer);

 private:
  bool command(const std::string& line, const std::function<std::string(const std::string&)>& answer);
  void say(const std::string& line, const std::function<std::string(const std::string&)>& answer);

  std::function<void(const std::string&)> set_;
  std::string text_;    // all of it: what was typed and what was answered
  std::string before_;  // without the last line and its answer
  std::string last_;    // the last line
};

}  // namespace tokamak
