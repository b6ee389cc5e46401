#include "config/help.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/spelling.h"

namespace tokamak {

namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return text;
}

struct Placeholder {
  std::string operator()(bool*) const { return ""; }
  std::string operator()(int64_t*) const { return "=N"; }
  std::string operator()(double*) const { return "=X"; }
  std::string operator()(std::string*) const { return "=TEXT"; }
  std::string operator()(Precision*) const { return "=TEXT"; }
  std::string operator()(std::vector<std::string>*) const { return "=A,B,..."; }
};

bool is_list(const Field& field) { return std::holds_alternative<std::vector<std::string>*>(field.target); }

std::string positional_name(const Field& field) { return upper(field.key) + (is_list(field) ? "..." : ""); }

std::string default_value(const Field& field) {
  if (std::holds_alternative<bool*>(field.target)) return std::get<bool>(get(field)) ? "on" : "off";
  return format_value(get(field));
}

/// The choices, or the range when there is one; types alone are plain from the default.
std::string accepted(const Field& field) {
  if (field.rule.choices.empty()) return "";
  std::string text;
  for (const std::string& choice : field.rule.choices) {
    if (!choice.empty()) text += (text.empty() ? "" : ", ") + choice;
  }
  return " (" + text + ")";
}

std::string option_line(const Field& field) {
  std::string name = fmt::format("  --{}{}", option_spelling(field.key), std::visit(Placeholder(), field.target));
  std::string text = fmt::format("{}{} [{}]\n", field.help, accepted(field), default_value(field));
  return name.size() < 36 ? fmt::format("{:<36}{}", name, text) : fmt::format("{}\n{:36}{}", name, "", text);
}

std::string escape_cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string section_of(const Field& field) { return field.key.substr(0, field.key.find('.') + 1); }

}  // namespace

std::string usage(const std::vector<Field>& fields) {
  std::string text;
  bool has_options = false;
  for (const Field& field : fields) {
    has_options |= !field.is_positional();
    if (!field.is_positional()) continue;
    std::string name = positional_name(field);
    text += (text.empty() ? "" : " ") + (field.required ? name : "[" + name + "]");
  }
  if (has_options) text += text.empty() ? "[--key=value ...]" : " [--key=value ...]";
  return text;
}

std::string help_text(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    if (field.is_positional()) text += fmt::format("  {:<34}{}\n", positional_name(field), field.help);
  }
  std::string section;
  bool begun = false;
  for (const Field& field : fields) {
    if (field.is_positional()) continue;
    if (!begun || section_of(field) != section) {
      section = section_of(field);
      std::string title = section.empty() ? "options" : section.substr(0, section.size() - 1);
      text +=
          fmt::format("{}{}{}\n", text.empty() ? "" : "\n", title, section.empty() ? "" : ": " + field.section_help);
      begun = true;
    }
    text += option_line(field);
  }
  return text;
}

std::string help_markdown(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    if (field.is_positional()) text += fmt::format("- `{}`: {}\n", positional_name(field), field.help);
  }
  std::string section;
  bool begun = false;
  for (const Field& field : fields) {
    if (field.is_positional() || field.kind == FieldKind::kConfig) continue;
    if (!begun || section_of(field) != section) {
      section = section_of(field);
      if (!text.empty()) text += "\n";
      if (!section.empty()) text += fmt::format("`{}*`: {}\n\n", section, field.section_help);
      text += "| option | default | meaning |\n|---|---|---|\n";
      begun = true;
    }
    text += fmt::format("| `--{}` | `{}` | {}{} |\n", option_spelling(field.key), default_value(field),
                        escape_cell(field.help), escape_cell(accepted(field)));
  }
  return text;
}

}  // namespace tokamak
