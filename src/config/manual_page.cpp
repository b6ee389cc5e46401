#include "config/manual_page.h"

#include <fmt/core.h>

namespace tokamak {

namespace {

std::string term(const OptionWords& option) {
  std::string name = "\\fB" + roff_escaped(option.name) + "\\fR";
  if (!option.placeholder.empty()) name += "=\\fI" + roff_escaped(option.placeholder.substr(1)) + "\\fR";
  std::string text = roff_escaped(option.help);
  if (!option.choices.empty()) {
    text += "\n.br\nOne of";
    for (const std::string& choice : option.choices)
      text += (&choice == &option.choices[0] ? " " : ", ") + roff_escaped(choice);
    text += ".";
  }
  if (!option.is_positional())
    text += "\n.br\nDefault: " + (option.present.empty() ? "none" : roff_escaped(option.present));
  return fmt::format(".TP\n{}\n{}\n", name, text);
}

enum class Line { kText, kCode, kItem, kEmpty };

Line kind_of(std::string_view line) {
  if (line.find_first_not_of(' ') == line.npos) return Line::kEmpty;
  if (line.starts_with("  ")) return Line::kCode;
  return line.starts_with("- ") ? Line::kItem : Line::kText;
}

}  // namespace

std::string roff_escaped(std::string_view text) {
  std::string escaped;
  bool line_begins = true;
  for (char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '`') {
      escaped += "\\(ga";
    } else if (c == '^') {
      escaped += "\\(ha";
    } else if (c == '~') {
      escaped += "\\(ti";
    } else {
      escaped += c;
    }
    line_begins = c == '\n';
  }
  return escaped;
}

std::string roff_paragraphs(std::string_view text) {
  std::string page;
  Line before = Line::kEmpty;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    Line kind = kind_of(line);
    if (before == Line::kCode && kind != Line::kCode) page += ".EE\n";
    if (kind == Line::kCode && before != Line::kCode) page += ".PP\n.EX\n";
    if (kind == Line::kText && before != Line::kText && before != Line::kItem) page += ".PP\n";
    if (kind == Line::kItem) {
      page += ".IP \\(bu 2\n";
      line.remove_prefix(2);
    }
    if (kind != Line::kEmpty) page += roff_escaped(line) + "\n";
    // The second line of an item is still of that item.
    before = kind == Line::kText && before == Line::kItem ? Line::kItem : kind;
  }
  return before == Line::kCode ? page + ".EE\n" : page;
}

std::string roff_options(std::span<const OptionWords> options) {
  std::string page;
  for (const OptionWords& option : options)
    if (option.is_positional()) page += (page.empty() ? ".SH ARGUMENTS\n" : "") + term(option);
  const std::string* section = nullptr;
  for (const OptionWords& option : options) {
    if (option.is_positional()) continue;
    if (!section) page += ".SH OPTIONS\n";
    if ((!section || option.section != *section) && !option.section.empty())
      page += fmt::format(".SS {}: {}\n", roff_escaped(option.section), roff_escaped(option.section_help));
    section = &option.section;
    page += term(option);
  }
  return page;
}

}  // namespace tokamak
