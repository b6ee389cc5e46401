// `tokamak docs`: writes docs/cli.md from the option structs (make docs).
#include <fmt/core.h>

#include "cli/commands.h"

namespace tokamak {

namespace {

struct DocsOptions {};

void visit(FieldList&, DocsOptions&) {}

int run_docs(const DocsOptions&) {
  fmt::print("# Commands\n\nWritten by `tokamak docs` from the option structs; do not edit.\n");
  for (const Command& command : all_commands()) {
    if (command.hidden) continue;
    fmt::print("\n## tokamak {}\n\n{}\n\n```\ntokamak {} {}\n```\n", command.name, command.summary, command.name,
               command.usage());
    if (!command.details.empty()) fmt::print("\n{}\n", command.details);
    std::string options = command.markdown();
    if (!options.empty()) fmt::print("\n{}", options);
  }
  return 0;
}

}  // namespace

Command docs_command() {
  Command command = make_command<DocsOptions>("docs", "print docs/cli.md", "", run_docs);
  command.hidden = true;
  return command;
}

}  // namespace tokamak
