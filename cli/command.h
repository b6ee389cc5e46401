// One command of the program, made from its option struct and its function; --help and docs/cli.md come from the
// struct.
//
//   struct EvalOptions { std::string config; RunConfig run; };
//   void visit(FieldList& v, EvalOptions& c) {
//     v.config_file("config", c.config, "run file (TOML)");
//     v.config(c.run);
//   }
//   int run_eval(const EvalOptions& options);
//   Command eval_command() { return make_command<EvalOptions>("eval", "validation loss of a checkpoint", "", run_eval);
//   }
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/command_line.h"
#include "config/help.h"
#include "config/option_words.h"
#include "config/validate.h"
#include "config/visit.h"

namespace tokamak {

using Arguments = std::span<const std::string>;

struct Command {
  std::string name;
  std::string summary;                          // one line, shown in the list of commands
  std::string details;                          // a paragraph or an example for --help; may be empty
  std::string build_notes;                      // for --help only: what this build lacks; usually empty
  std::function<int(Arguments)> run;            // reads the arguments and runs; the result is the exit status
  std::function<void(Arguments)> print_config;  // empty when the command takes no run configuration
  std::function<std::string()> usage;
  std::function<std::string()> help;
  std::function<std::string()> markdown;
  std::function<std::vector<OptionWords>()> options;
  bool hidden = false;  // for developers: not in the list of commands
};

/// Prints the fields that configuration files may set.
void print_config(const std::vector<Field>& fields);

/// "tokamak NAME ARGUMENTS", with those that have spaces in quotes, so that it can be typed again.
std::string typed_line(const std::string& name, const std::vector<std::string>& arguments);

/// A command whose arguments fill `Options`, which has a visit(). A member `RunConfig run` and the options themselves,
/// where there is a validate() for them, are validated before `function` sees them; a member `GivenOptions given` gets
/// what the user has typed. complete(), where there is one, comes before: for defaults that depend on other options.
template <class Options>
Command make_command(std::string name, std::string summary, std::string details, int (*function)(const Options&)) {
  auto read = [](Options& options, Arguments arguments) {
    GivenOptions given = read_options(fields_of(options), arguments);
    if constexpr (requires { options.given; }) options.given = std::move(given);
    if constexpr (requires { complete(options); }) complete(options);
    if constexpr (requires { validate_asked(options.run); }) validate_asked(options.run);
    if constexpr (requires { validate(options); }) validate(options);
  };
  auto describe = [](auto writer) {
    Options defaults;
    return writer(fields_of(defaults));
  };
  Command command{.name = std::move(name), .summary = std::move(summary), .details = std::move(details)};
  command.run = [read, function](Arguments arguments) {
    Options options;
    read(options, arguments);
    return function(options);
  };
  if constexpr (requires(Options options) { validate_asked(options.run); }) {
    command.print_config = [read](Arguments arguments) {
      Options options;
      read(options, arguments);
      print_config(fields_of(options));
    };
  }
  command.usage = [describe] { return describe(usage); };
  command.help = [describe] { return describe(help_text); };
  command.markdown = [describe] { return describe(help_markdown); };
  command.options = [describe] { return describe(option_words); };
  return command;
}

}  // namespace tokamak
