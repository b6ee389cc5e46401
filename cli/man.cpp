// `tokamak man`: manual pages of the program, its commands and the configuration, from the option structs.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/version.h"
#include "config/config.h"
#include "config/manual_page.h"
#include "config/number.h"
#include "config/suggest.h"

namespace tokamak {

namespace {

struct ManOptions {
  std::string page = "tokamak";
  std::string out;
};

void visit(FieldList& v, ManOptions& c) {
  v.positional("page", c.page, "tokamak, tokamak-COMMAND or tokamak-config", false);
  v("out", c.out, "folder for all pages, as man1/NAME.1 and man5/NAME.5; empty: print the one");
}

struct Page {
  std::string name;  // "tokamak-data-inspect"
  int section = 1;
  std::string text;
};

constexpr const char* kConfigPage = "tokamak-config";

std::string page_of(const std::string& command) {
  std::string name = "tokamak-" + command;
  std::ranges::replace(name, ' ', '-');
  return name;
}

Page make_page(std::string name, int section, std::string_view summary, const std::string& body) {
  std::string text =
      fmt::format(".TH {} {} \"\" \"tokamak {}\" \"Tokamak\"\n.SH NAME\n{} \\- {}\n{}", roff_escaped(name), section,
                  kVersion, roff_escaped(name), roff_escaped(summary), body);
  return {std::move(name), section, std::move(text)};
}

std::string see_also(const std::string& name, int section) {
  return fmt::format(".SH SEE ALSO\n.BR {} ({})\n", roff_escaped(name), section);
}

Page program_page() {
  std::string body = ".SH SYNOPSIS\n.B tokamak\n.I COMMAND\n[ARGUMENTS] [\\-\\-key=value ...]\n.SH COMMANDS\n";
  for (const Command& command : all_commands())
    if (!command.hidden)
      body += fmt::format(".TP\n.BR {} (1)\n{}\n", roff_escaped(page_of(command.name)), roff_escaped(command.summary));
  body += ".SH NOTES\n" + roff_paragraphs(kNumberNote) + see_also(kConfigPage, 5);
  return make_page("tokamak", 1, "trains language models", body);
}

Page command_page(const Command& command) {
  std::string body =
      fmt::format(".SH SYNOPSIS\n.B tokamak {}\n{}\n", roff_escaped(command.name), roff_escaped(command.usage()));
  if (!command.details.empty()) body += ".SH DESCRIPTION\n" + roff_paragraphs(command.details);
  std::vector<OptionWords> options = command.options();
  std::erase_if(options, [](const OptionWords& option) { return option.kind == FieldKind::kConfig; });
  body += roff_options(options);
  if (command.print_config)
    body +=
        fmt::format(".SH CONFIGURATION\nAll keys of\n.BR {} (5)\nare options as well.\n", roff_escaped(kConfigPage));
  return make_page(page_of(command.name), 1, command.summary, body + see_also("tokamak", 1));
}

Page config_page() {
  RunConfig defaults;
  std::string body = ".SH DESCRIPTION\n" +
                     roff_paragraphs(
                         "Keys of a run file, which is TOML, or options: --model.layers=6 is layers = 6 under [model] "
                         "in the file.\n\n" +
                         std::string(config_note())) +
                     roff_options(option_words(fields_of(defaults)));
  return make_page(kConfigPage, 5, "configuration of a run", body + see_also("tokamak", 1));
}

std::vector<Page> all_pages() {
  std::vector<Page> pages = {program_page()};
  for (const Command& command : all_commands())
    if (!command.hidden) pages.push_back(command_page(command));
  pages.push_back(config_page());
  return pages;
}

void write_pages(const std::filesystem::path& folder) {
  for (const Page& page : all_pages()) {
    std::filesystem::path section = folder / fmt::format("man{}", page.section);
    std::filesystem::create_directories(section);
    write_output_file(section / fmt::format("{}.{}", page.name, page.section), page.text);
  }
}

int run_man(const ManOptions& options) {
  if (!options.out.empty()) {
    write_pages(options.out);
    return 0;
  }
  std::vector<std::string> known;
  for (const Page& page : all_pages()) {
    if (page.name == options.page || page.name == page_of(options.page)) {
      fmt::print("{}", page.text);
      return 0;
    }
    known.push_back(page.name);
  }
  user_error(
      "[page] expected the name of a manual page, got '{}'{}; `tokamak man` lists the commands, each of which has one",
      options.page, did_you_mean(options.page, known));
}

}  // namespace

Command man_command() {
  return make_command<ManOptions>("man", "manual pages, for man(1)",
                                  "    tokamak man train | man -l -\n"
                                  "    tokamak man --out=share/man",
                                  run_man);
}

}  // namespace tokamak
