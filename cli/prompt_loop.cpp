#include "cli/prompt_loop.h"

#include <fmt/core.h>
#include <unistd.h>

#include "base/error.h"
#include "base/printable.h"
#include "cli/completion.h"
#include "cli/streams.h"
#include "cli/typed_line.h"

namespace tokamak {
namespace {

constexpr const char* kHelp =
    "A line is continued, and the next one goes on from all of that.\n"
    "  /again            another answer to the last line\n"
    "  /new              begin with nothing\n"
    "  /history          the text so far\n"
    "  /set KEY=VALUE    tokens, temperature, top_k, top_p, min_p, repetition_penalty, stop, seed\n"
    "  /quit             end, as Ctrl-D does\n"
    "A line that begins with // begins with one /.\n";

}  // namespace

void PromptLoop::run(const std::function<std::string(const std::string&)>& answer) {
  if (::isatty(STDIN_FILENO) == 1) print_to_stderr("/help tells what can be typed; Ctrl-D ends\n");
  for (std::string line; read_typed_line(line);) {
    try {
      if (!command(line, answer)) return;
    } catch (const UserError& error) {
      print_to_stderr(fmt::format("error: {}\n", printable(error.what())));
    }
  }
}

// False: no more.
bool PromptLoop::command(const std::string& line, const std::function<std::string(const std::string&)>& answer) {
  constexpr std::string_view kSet = "/set ";
  if (!line.starts_with('/') || line.starts_with("//")) {
    before_ = text_;
    last_ = line.starts_with("//") ? line.substr(1) : line;
    say(last_, answer);
  } else if (line == "/quit") {
    return false;
  } else if (line == "/again") {
    if (last_.empty() && before_.empty()) user_error("[/again] expected a line before it, got none; type one");
    text_ = before_;
    say(last_, answer);
  } else if (line == "/new") {
    text_ = before_ = last_ = "";
  } else if (line == "/history") {
    fmt::print("{}\n", shown_text(text_));
  } else if (line.starts_with(kSet)) {
    set_(line.substr(kSet.size()));
  } else {
    print_to_stderr(kHelp);
  }
  return true;
}

void PromptLoop::say(const std::string& line, const std::function<std::string(const std::string&)>& answer) {
  text_ += (text_.empty() ? "" : "\n") + line;
  text_ += answer(text_);
}

}  // namespace tokamak
