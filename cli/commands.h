// The table of all commands. A new command is a file cli/<name>.cpp, its line here and its line in commands.cpp. A name
// of two words ("data inspect") makes its command one of a group; its file is cli/data_inspect.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "cli/command.h"

namespace tokamak {

// One per file cli/<name>.cpp, sorted.
Command checkpoint_diff_command();
Command checkpoint_list_command();
Command checkpoint_prune_command();
Command checkpoint_verify_command();
Command complete_command();
Command completions_command();
Command data_inspect_command();
Command data_ledger_command();
Command diff_command();
Command docs_command();
Command eval_command();
Command explain_command();
Command export_command();
Command generate_command();
Command import_command();
Command ladder_command();
Command man_command();
Command plan_command();
Command precompile_command();
Command prepare_command();
Command profile_command();
Command report_command();
Command scaling_command();
Command tokenize_command();
Command train_command();

/// Every command, in the order in which a new user meets them.
std::vector<Command> all_commands();

/// How defaults, file and command line give the run's configuration.
std::string_view config_note();

/// What `tokamak --help` prints.
std::string program_help();

/// What `tokamak help names` prints: other programs' names of options.
inline constexpr std::string_view kNamesTopic = "names";
std::string names_help();

/// What `tokamak GROUP --help` prints, for the first word of commands of two words; empty if there are none.
std::string group_help(const std::string& group);

/// What `tokamak <command> --help` prints.
std::string command_help(const Command& command);

}  // namespace tokamak
