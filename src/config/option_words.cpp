#include "config/option_words.h"

#include <algorithm>
#include <cctype>

#include "config/spelling.h"

namespace tokamak {

namespace {

struct Placeholder {
  std::string operator()(bool*) const { return ""; }
  std::string operator()(int64_t*) const { return "=N"; }
  std::string operator()(double*) const { return "=X"; }
  std::string operator()(std::string*) const { return "=TEXT"; }
  std::string operator()(Precision*) const { return "=TEXT"; }
  std::string operator()(std::vector<std::string>*) const { return "=A,B,..."; }
};

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return text;
}

std::string present_value(const Field& field) {
  if (std::holds_alternative<bool*>(field.target)) return std::get<bool>(get(field)) ? "on" : "off";
  return format_value(get(field));
}

OptionWords words_of(const Field& field) {
  OptionWords words{.help = field.help,
                    .section = field.key.substr(0, field.key.find('.') + 1),
                    .section_help = field.section_help,
                    .present = present_value(field),
                    .kind = field.kind,
                    .is_switch = std::holds_alternative<bool*>(field.target),
                    .is_list = std::holds_alternative<std::vector<std::string>*>(field.target)};
  if (!words.section.empty()) words.section.pop_back();
  for (const std::string& choice : field.rule.choices)
    if (!choice.empty()) words.choices.push_back(choice);
  if (field.is_positional()) {
    words.name = upper(field.key) + (words.is_list ? "..." : "");
  } else {
    words.name = "--" + option_spelling(field.key);
    words.placeholder = std::visit(Placeholder(), field.target);
  }
  return words;
}

/// Whether a name begins with what was typed, which may have '-' for '_'.
bool begins_with(std::string_view name, std::string_view typed) {
  auto same = [](char a, char b) { return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_')); };
  return typed.size() <= name.size() && std::equal(typed.begin(), typed.end(), name.begin(), same);
}

const OptionWords* find(std::span<const OptionWords> options, std::string_view name) {
  auto found = std::ranges::find_if(options, [&](const OptionWords& option) {
    return !option.is_positional() && option.name.size() == name.size() && begins_with(option.name, name);
  });
  return found == options.end() ? nullptr : &*found;
}

/// Values of one option, each behind `before`.
std::vector<Candidate> values(const OptionWords& option, std::string before, std::string_view value) {
  if (size_t comma = value.rfind(','); option.is_list && comma != value.npos) {
    before += value.substr(0, comma + 1);
    value.remove_prefix(comma + 1);
  }
  std::vector<std::string> known = option.is_switch ? std::vector<std::string>{"on", "off"} : option.choices;
  std::vector<Candidate> found;
  for (const std::string& choice : known)
    if (choice.starts_with(value)) found.push_back({before + choice, ""});
  return found;
}

}  // namespace

std::vector<OptionWords> option_words(const std::vector<Field>& fields) {
  std::vector<OptionWords> words;
  std::ranges::transform(fields, std::back_inserter(words), words_of);
  return words;
}

std::vector<Candidate> complete_option(std::span<const OptionWords> options, std::string_view word) {
  if (size_t equals = word.find('='); equals != word.npos) {
    const OptionWords* option = find(options, word.substr(0, equals));
    std::string before(word.substr(0, equals + 1));
    return option ? values(*option, before, word.substr(equals + 1)) : std::vector<Candidate>();
  }
  std::vector<Candidate> found;
  for (const OptionWords& option : options) {
    if (option.is_positional()) continue;
    if (begins_with(option.name, word)) found.push_back({option.name + (option.is_switch ? "" : "="), option.help});
    std::string off = "--no-" + option.name.substr(2);
    // Only where that is what somebody looks for: most switches are off.
    if (option.is_switch && word.starts_with("--no") && begins_with(off, word))
      found.push_back({off, "not: " + option.help});
  }
  return found;
}

std::vector<Candidate> complete_value(std::span<const OptionWords> options, std::string_view name,
                                      std::string_view value) {
  const OptionWords* option = find(options, name);
  return option && !option->is_switch ? values(*option, "", value) : std::vector<Candidate>();
}

}  // namespace tokamak
