#include "config/assignment.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "config/config.h"
#include "config/foreign_names.h"
#include "config/former_keys.h"
#include "config/spelling.h"
#include "config/suggest.h"
#include "config/visit.h"

namespace tokamak {

namespace {

// Keys of its section, else of its name in another one or in none.
std::string list_near(std::string_view key, const std::vector<std::string>& known) {
  size_t dot = key.find('.');
  std::string_view section = key.substr(0, std::min(dot, key.size())), name = key.substr(dot + 1);
  std::string inside, alike;
  for (const std::string& option : known) {
    if (option.starts_with(fmt::format("{}.", section)))
      inside += fmt::format("{}--{}", inside.empty() ? "" : ", ", option);
    else if (option == section || option == option_spelling(name))
      alike += fmt::format("{}--{}", alike.empty() ? "" : ", ", option);
  }
  return inside.empty() ? alike : inside;
}

// A key that is right, but of another command, is no misspelt one of this command's.
void refuse_key_of_runs(std::string_view key, const std::vector<std::string>& known, std::string_view where) {
  RunConfig run;
  if (!find_field(fields_of(run), key)) return;
  std::string near = list_near(key, known);
  user_error("[{}] expected a key that this command takes, got '{}', which is one of runs{}{}; --help lists all", where,
             key, near.empty() ? "" : "; near it, this command takes ", near);
}

bool says_something(const Value& value) { return value != Value(int64_t(0)) && value != Value(0.0); }

// Of the alternatives of a field that is set, those that an earlier source has set are taken back.
void clear_alternatives(const std::vector<Field>& fields, const Field& of) {
  for (const Field& field : fields)
    if (field.alternatives == of.alternatives && field.key != of.key) set(field, int64_t(0), field.key);
}

// In one source neither of two alternatives is more wanted than the other.
void refuse_two_alternatives(const std::vector<Field>& fields, const std::vector<Assignment>& assignments) {
  std::map<std::string_view, const Assignment*> said;
  for (const Assignment& assignment : assignments) {
    const Field& field = require_field(fields, assignment.key, assignment.where);
    if (field.alternatives.empty() || !says_something(assignment.value)) continue;
    const Assignment* other = said.try_emplace(field.alternatives, &assignment).first->second;
    if (other->key != assignment.key)
      user_error("[{}] expected either {} or {}, as each says the {}, got both; leave one out", assignment.where,
                 other->key, assignment.key, field.alternatives);
  }
}

}  // namespace

std::vector<std::string> option_names(const std::vector<Field>& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields)
    if (!field.is_positional()) names.push_back(option_spelling(field.key));
  return names;
}

const Field& require_field(const std::vector<Field>& fields, std::string_view key, std::string_view where) {
  for (const Field& field : fields)
    if (!field.is_positional() && field.key == key) return field;
  std::vector<std::string> known = option_names(fields);
  std::string_view flag = key.starts_with("no_") ? key.substr(3) : key;
  if (std::string_view pass = former_pass_switch(flag); !pass.empty() && find_field(fields, "compile.disable_passes"))
    user_error(
        "[{}] expected a known key, got '{}', which switched the pass {}; passes are on unless "
        "compile.disable_passes names them: write disable_passes = [\"{}\"] under [compile], or "
        "--compile.disable_passes={}",
        where, flag, pass, pass, pass);
  if (std::string_view why = why_removed(flag); !why.empty() && find_field(fields, "mesh.tensor"))
    user_error("[{}] expected a known key, got '{}', {}", where, flag, why);
  std::string came = where.starts_with("--") ? option_spelling(key) : std::string(key);  // files have no hyphens
  if (std::string hint = foreign_hint(key, known); !hint.empty())
    user_error("[{}] expected a known key, got '{}'{}", where, came, hint);
  std::string prefix = std::string(key) + ".";
  bool is_section =
      std::any_of(known.begin(), known.end(), [&](const std::string& k) { return k.starts_with(prefix); });
  if (is_section) user_error("[{}] expected a section, got a value; write '[{}]' and its keys below it", where, key);
  refuse_key_of_runs(key, known, where);
  user_error("[{}] expected a known key, got '{}'{}", where, came, did_you_mean(came, known));
}

void assign(const std::vector<Field>& fields, const std::vector<Assignment>& assignments) {
  refuse_two_alternatives(fields, assignments);
  for (bool presets : {true, false}) {
    for (const Assignment& assignment : assignments) {
      const Field& field = require_field(fields, assignment.key, assignment.where);
      if (bool(field.expand) != presets) continue;
      set(field, assignment.value, assignment.where);
      if (!field.alternatives.empty() && says_something(assignment.value)) clear_alternatives(fields, field);
      if (field.expand) field.expand();
    }
  }
}

std::vector<Field> config_fields(const std::vector<Field>& fields) {
  std::vector<Field> selected;
  for (const Field& field : fields)
    if (field.kind == FieldKind::kConfig) selected.push_back(field);
  return selected;
}

}  // namespace tokamak
