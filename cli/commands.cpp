#include "cli/commands.h"

#include <fmt/core.h>

#include "config/foreign_names.h"
#include "config/number.h"

namespace tokamak {

std::vector<Command> all_commands() {
  return {
      prepare_command(),  // a line each
      data_inspect_command(),
      tokenize_command(),
      train_command(),
      generate_command(),
      eval_command(),
      import_command(),
      export_command(),
      checkpoint_list_command(),
      checkpoint_verify_command(),
      checkpoint_diff_command(),
      checkpoint_prune_command(),
      data_ledger_command(),
      diff_command(),
      ladder_command(),
      profile_command(),
      report_command(),
      scaling_command(),
      explain_command(),
      plan_command(),
      precompile_command(),
      completions_command(),
      man_command(),
      complete_command(),
      docs_command(),
  };
}

namespace {

/// A line for each command that users should see and whose name begins so.
std::string command_list(const std::string& begin) {
  std::string text;
  for (const Command& command : all_commands()) {
    if (!command.hidden && command.name.starts_with(begin))
      text += fmt::format("  {:<19}{}\n", command.name, command.summary);
  }
  return text;
}

}  // namespace

std::string typed_line(const std::string& name, const std::vector<std::string>& arguments) {
  std::string line = "tokamak " + name;
  for (const std::string& argument : arguments)
    line += argument.find(' ') == std::string::npos ? " " + argument : " '" + argument + "'";
  return line;
}

std::string_view config_note() {
  return "The order is defaults < configuration file < command line; a preset counts as given where it stands.\n"
         "`--print-config` prints the result as a configuration file and ends. A setting that does nothing beside the\n"
         "others, as mesh.zero on one rank, is told when a run begins.\n";
}

std::string group_help(const std::string& group) {
  std::string list = command_list(group + " ");
  return list.empty() ? "" : fmt::format("usage: tokamak {} COMMAND [ARGUMENTS] [--key=value ...]\n\n{}", group, list);
}

std::string program_help() {
  return "usage: tokamak COMMAND [ARGUMENTS] [--key=value ...]\n\n" + command_list("") +
         "\n`tokamak help COMMAND` lists a command's options; `tokamak help names` what nanoGPT, llm.c, torchtitan,\n"
         "Megatron-LM and Hugging Face call them; `tokamak --version` prints the version.\n";
}

std::string names_help() {
  return "Keys of a run and options of `generate`, and what other programs call them. A name that is typed as there\n"
         "is refused with the one here.\n\n" +
         foreign_names_text();
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("usage: tokamak {} {}\n\n{}\n", command.name, command.usage(), command.summary);
  if (!command.details.empty()) text += fmt::format("\n{}\n", command.details);
  if (!command.build_notes.empty()) text += fmt::format("\n{}\n", command.build_notes);
  std::string options = command.help();
  if (!options.empty()) text += fmt::format("\n{}\n{}\n", options, kNumberNote);
  if (command.print_config) text += config_note();
  return text;
}

}  // namespace tokamak
