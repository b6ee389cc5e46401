#include "config/toml.h"

#include <toml++/toml.h>

#include <optional>

#include "base/error.h"
#include "config/suggest.h"

namespace tokamak {

namespace {

std::string section_of(const Field& field) {
  size_t dot = field.key.rfind('.');
  return dot == std::string::npos ? "" : field.key.substr(0, dot);
}

/// Walks the tables and collects their values.
struct Reader {
  const std::vector<Field>& fields;
  std::string_view name;
  std::vector<Assignment> assignments = {};

  std::string where(const toml::node& node, const std::string& key) const {
    return fmt::format("{}:{}: {}", name, node.source().begin.line, key);
  }

  Value list(const toml::array& array, const std::string& key) const {
    std::vector<std::string> items;
    for (const toml::node& item : array) {
      if (!item.is_string()) {
        user_error("[{}] expected {}, got a list with other values", where(array, key),
                   expectation(require_field(fields, key, where(array, key))));
      }
      items.push_back(item.as_string()->get());
    }
    return items;
  }

  std::optional<Value> value(const toml::node& node, const std::string& key) const {
    if (auto* flag = node.as_boolean()) return Value(flag->get());
    if (auto* number = node.as_integer()) return Value(int64_t(number->get()));
    if (auto* number = node.as_floating_point()) return Value(number->get());
    if (auto* text = node.as_string()) return Value(text->get());
    if (auto* array = node.as_array()) return list(*array, key);
    return std::nullopt;
  }

  void table(const toml::table& table, const std::string& prefix) {
    for (auto&& [inner, node] : table) {
      std::string key = prefix + std::string(inner.str());
      if (auto* section = node.as_table()) {
        check_section(*section, key);
        this->table(*section, key + ".");
        continue;
      }
      const Field& field = require_field(fields, key, where(node, key));
      std::optional<Value> found = value(node, key);
      if (!found) user_error("[{}] expected {}, got a date or time", where(node, key), expectation(field));
      assignments.push_back({key, *found, where(node, key)});
    }
  }

  void check_section(const toml::table& section, const std::string& key) const {
    std::vector<std::string> sections;
    for (const Field& field : fields) {
      if (field.key.starts_with(key + ".")) return;
      if (field.key == key) user_error("[{}] expected {}, got a section", where(section, key), expectation(field));
      sections.push_back(section_of(field));
    }
    user_error("[{}] expected a known section, got '{}'{}", where(section, key), key, did_you_mean(key, sections));
  }
};

/// Every dot of a key is a table in a table, however deep, and whoever walks through them would overflow the stack. So
/// few dots outside of quotes are enough for any line of a run file.
void check_depth(std::string_view text, std::string_view name) {
  constexpr int kMaxDots = 100;
  int line = 1, dots = 0;
  char quote = 0;
  bool in_comment = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') {
      ++line;
      dots = quote = 0;
      in_comment = false;
    }
    if (in_comment) continue;
    if (quote == '"' && c == '\\') ++i;
    if (!quote && c == '#') in_comment = true;
    if (c == '"' || c == '\'') quote = !quote ? c : quote == c ? 0 : quote;
    if (!quote && c == '.' && ++dots > kMaxDots)
      user_error("[{}:{}] expected a key of a few parts, got one of more than {}", name, line, kMaxDots);
  }
}

}  // namespace

std::vector<Assignment> parse_toml(const std::vector<Field>& fields, std::string_view text, std::string_view name) {
  std::vector<Field> known = config_fields(fields);
  check_depth(text, name);
  Reader reader{known, name};
  try {
    reader.table(toml::parse(text, name), "");
  } catch (const toml::parse_error& error) {
    user_error(
        "[{}:{}] expected TOML, got something else: {}; mend the line (text stands in quotes; data is named with "
        "--data.path)",
        name, error.source().begin.line, error.description());
  }
  return reader.assignments;
}

std::string print_toml(const std::vector<Field>& fields) {
  std::string text, section;
  for (const Field& field : config_fields(fields)) {
    std::string here = section_of(field);
    if (here != section) text += fmt::format("\n[{}]  # {}\n", here, field.section_help);
    section = here;
    std::string line =
        fmt::format("{} = {}", field.key.substr(here.empty() ? 0 : here.size() + 1), format_value(get(field)));
    text += fmt::format("{:<31} # {}\n", line, field.help);
  }
  return text;
}

}  // namespace tokamak
