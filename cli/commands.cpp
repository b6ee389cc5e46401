#include "cli/commands.h"

#include <fmt/core.h>

namespace tokamak {

std::vector<Command> all_commands() {
  return {
      prepare_command(), tokenize_command(), train_command(),   generate_command(),
      eval_command(),    ladder_command(),   explain_command(), docs_command(),
  };
}

std::string program_help() {
  std::string text = "usage: tokamak COMMAND [ARGUMENTS] [--key=value ...]\n\n";
  for (const Command& command : all_commands()) {
    if (!command.hidden) text += fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  return text + "\n`tokamak COMMAND --help` lists a command's options; `tokamak --version` prints the version.\n";
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("usage: tokamak {} {}\n\n{}\n", command.name, command.usage(), command.summary);
  if (!command.details.empty()) text += fmt::format("\n{}\n", command.details);
  std::string options = command.help();
  if (!options.empty()) text += "\n" + options;
  if (command.print_config) {
    text +=
        "\nThe order is defaults < configuration file < command line; a preset counts as given where it stands.\n"
        "`--print-config` prints the result as a configuration file and ends.\n";
  }
  return text;
}

}  // namespace tokamak
