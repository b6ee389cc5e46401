#include "config/help.h"

#include <fmt/core.h>

#include "config/option_words.h"

namespace tokamak {

namespace {

/// The choices, or nothing: types alone are plain from the default.
std::string accepted(const OptionWords& option) {
  std::string text;
  for (const std::string& choice : option.choices) text += (text.empty() ? "" : ", ") + choice;
  return text.empty() ? "" : " (" + text + ")";
}

std::string option_line(const OptionWords& option) {
  std::string name = fmt::format("  {}{}", option.name, option.placeholder);
  std::string text = fmt::format("{}{} [{}]\n", option.help, accepted(option), option.present);
  return name.size() < 36 ? fmt::format("{:<36}{}", name, text) : fmt::format("{}\n{:36}{}", name, "", text);
}

std::string escape_cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string usage(const std::vector<Field>& fields) {
  std::string text;
  bool has_options = false;
  for (const OptionWords& option : option_words(fields)) has_options |= !option.is_positional();
  for (const Field& field : fields) {
    if (!field.is_positional()) continue;
    std::string name = option_words({field})[0].name;
    text += (text.empty() ? "" : " ") + (field.required ? name : "[" + name + "]");
  }
  if (has_options) text += text.empty() ? "[--key=value ...]" : " [--key=value ...]";
  return text;
}

std::string help_text(const std::vector<Field>& fields) {
  std::vector<OptionWords> options = option_words(fields);
  std::string text;
  for (const OptionWords& option : options) {
    if (option.is_positional()) text += fmt::format("  {:<34}{}\n", option.name, option.help);
  }
  std::string section;
  bool begun = false;
  for (const OptionWords& option : options) {
    if (option.is_positional()) continue;
    if (!begun || option.section != section) {
      section = option.section;
      text += text.empty() ? "" : "\n";
      text += section.empty() ? "options\n" : fmt::format("{}: {}\n", section, option.section_help);
      begun = true;
    }
    text += option_line(option);
  }
  return text;
}

std::string help_markdown(const std::vector<Field>& fields) {
  std::vector<OptionWords> options = option_words(fields);
  std::string text;
  for (const OptionWords& option : options) {
    if (option.is_positional()) text += fmt::format("- `{}`: {}\n", option.name, option.help);
  }
  std::string section;
  bool begun = false;
  for (const OptionWords& option : options) {
    if (option.is_positional() || option.kind == FieldKind::kConfig) continue;
    if (!begun || option.section != section) {
      section = option.section;
      if (!text.empty()) text += "\n";
      if (!section.empty()) text += fmt::format("`{}.*`: {}\n\n", section, option.section_help);
      text += "| option | default | meaning |\n|---|---|---|\n";
      begun = true;
    }
    text += fmt::format("| `{}` | `{}` | {}{} |\n", option.name, option.present, escape_cell(option.help),
                        escape_cell(accepted(option)));
  }
  return text;
}

}  // namespace tokamak
