// `tokamak docs`: writes docs/cli.md from the option structs (make docs).
#include <fmt/core.h>

#include <set>

#include "cli/commands.h"
#include "config/config.h"
#include "config/foreign_names.h"
#include "config/number.h"
#include "passes/pass.h"

namespace tokamak {

namespace {

struct DocsOptions {};

void visit(FieldList&, DocsOptions&) {}

// Examples, which --help indents by two, as Markdown's code.
std::string with_code_lines(std::string text) {
  if (text.starts_with("  ")) text.insert(0, "  ");
  for (size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ", at + 5))
    text.insert(at + 1, "  ");
  return text;
}

void print_command(const Command& command) {
  fmt::print("\n## tokamak {}\n\n{}\n\n```\ntokamak {} {}\n```\n", command.name, command.summary, command.name,
             command.usage());
  if (!command.details.empty()) fmt::print("\n{}\n", with_code_lines(command.details));
  std::string options = command.markdown();
  if (!options.empty()) fmt::print("\n{}", options);
  if (command.print_config) fmt::print("\nIt takes all keys of [the configuration](#the-configuration).\n");
}

void print_passes() {
  fmt::print("\n## The passes\n\n`compile.disable_passes` takes these names.\n\n| pass | what it does |\n|---|---|\n");
  std::set<std::string_view> names;  // some run more than once
  for (const Pass& pass : pipeline())
    if (names.insert(pass.name).second) fmt::print("| {} | {} |\n", pass.name, pass.summary);
}

int run_docs(const DocsOptions&) {
  fmt::print("# Commands\n\nWritten by `tokamak docs` from the option structs; do not edit. {}\n", kNumberNote);
  for (const Command& command : all_commands())
    if (!command.hidden) print_command(command);
  RunConfig defaults;
  fmt::print(
      "\n## The configuration\n\n"
      "Of `train`, `ladder` and `explain`: keys of a run file, or options. `--model.layers=6` is `layers = 6` under\n"
      "`[model]` in the file. {}\n{}",
      config_note(), help_markdown(fields_of(defaults)));
  fmt::print(
      "\n## Names elsewhere\n\nWhat nanoGPT, llm.c, torchtitan, Megatron-LM and Hugging Face (TrainingArguments and "
      "the files of models) call the\nkeys of a run and the options of `generate`; `tokamak help names` prints it, "
      "too. "
      "Another program's name is refused with\nthe one here.\n\n{}",
      foreign_names_markdown());
  print_passes();
  return 0;
}

}  // namespace

Command docs_command() {
  Command command = make_command<DocsOptions>("docs", "print docs/cli.md", "", run_docs);
  command.hidden = true;
  return command;
}

}  // namespace tokamak
