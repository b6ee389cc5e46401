// `tokamak completions SHELL`: the script that completes command lines of this program there (cli/shells/).
#include <fmt/core.h>

#include "base/embedded_file.h"
#include "base/error.h"
#include "cli/commands.h"
#include "config/suggest.h"

namespace tokamak {

std::span<const EmbeddedFile> shell_scripts();  // cli/CMakeLists.txt

namespace {

struct CompletionsOptions {
  std::string shell;
};

void visit(FieldList& v, CompletionsOptions& c) { v.positional("shell", c.shell, "bash, zsh or fish"); }

int run_completions(const CompletionsOptions& options) {
  for (const EmbeddedFile& script : shell_scripts()) {
    if (script.name == "tokamak." + options.shell) {
      fmt::print("{}", script.text);
      return 0;
    }
  }
  user_error("[shell] expected bash, zsh or fish, got '{}'{}", options.shell,
             did_you_mean(options.shell, {"bash", "zsh", "fish"}));
}

}  // namespace

Command completions_command() {
  return make_command<CompletionsOptions>("completions", "a script that completes command lines in bash, zsh or fish",
                                          "    source <(tokamak completions bash)\n"
                                          "    tokamak completions zsh > ~/.zfunc/_tokamak    # a folder of $fpath\n"
                                          "    tokamak completions fish > ~/.config/fish/completions/tokamak.fish",
                                          run_completions);
}

}  // namespace tokamak
