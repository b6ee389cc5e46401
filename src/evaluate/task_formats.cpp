// The kinds of tasks: what a line of each has to hold.
#include "evaluate/task.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace tokamak {
namespace {

using nlohmann::json;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// An object's fields under any of the names that files of this kind use.
class Fields {
 public:
  Fields(std::string_view line, const std::string& place) : place_(place), object_(json::parse(line, nullptr, false)) {
    if (!object_.is_object()) refuse("a JSON object on each line", object_.is_discarded() ? "no JSON" : "other JSON");
  }

  bool has(const char* name) const { return object_.contains(name); }

  std::string text(std::initializer_list<const char*> names) const {
    const json& value = at(names);
    if (!value.is_string()) refuse(fmt::format("text in \"{}\"", name_of(names)), value.type_name());
    return value.get<std::string>();
  }

  std::vector<std::string> texts(std::initializer_list<const char*> names) const {
    const json& value = at(names);
    if (!value.is_array()) refuse(fmt::format("a list of texts in \"{}\"", name_of(names)), value.type_name());
    std::vector<std::string> all;
    for (const json& one : value) {
      if (!one.is_string()) refuse(fmt::format("a list of texts in \"{}\"", name_of(names)), one.type_name());
      all.push_back(one.get<std::string>());
    }
    if (all.size() < 2) refuse(fmt::format("2 or more texts in \"{}\"", name_of(names)), std::to_string(all.size()));
    return all;
  }

  /// Counted from 0; as a number, or as HellaSwag's files have it on the hub, its digits.
  int64_t index(std::initializer_list<const char*> names, size_t count) const {
    const json& value = at(names);
    int64_t index = -1;
    if (value.is_number_integer()) index = value.get<int64_t>();
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
      if (error != std::errc() || end != text.data() + text.size()) index = -1;
    }
    if (index < 0 || index >= int64_t(count))
      refuse(fmt::format("a number from 0 to {} in \"{}\", which choice is right", count - 1, name_of(names)),
             value.dump());
    return index;
  }

  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    user_error("[eval] {}: expected {}, got {}", place_, expected, got);
  }

 private:
  const json& at(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (auto found = object_.find(name); found != object_.end()) return *found;
    std::string got, wanted;
    for (const char* name : names) wanted += fmt::format("{}\"{}\"", wanted.empty() ? "" : " or ", name);
    for (const auto& item : object_.items()) got += (got.empty() ? "" : ", ") + item.key();
    refuse("a field " + wanted, got.empty() ? "none" : got);
  }

  // The one that is there.
  const char* name_of(std::initializer_list<const char*> names) const {
    return *std::find_if(names.begin(), names.end(), [&](const char* name) { return has(name); });
  }

  const std::string& place_;
  json object_;
};

// A blank between them where neither has one.
AskedText asked(const std::string& context, const std::string& continuation) {
  bool has_blank = context.empty() || is_blank(context.back()) || (!continuation.empty() && is_blank(continuation[0]));
  return {context, has_blank ? "" : " ", continuation};
}

std::string stripped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// What is left of WikiHow's pages in HellaSwag goes, by the rules that lm-evaluation-harness has for it.
std::string without_brackets(std::string_view raw) {
  std::string text = stripped(raw), kept;
  replace_all(text, " [title]", ". ");
  for (size_t at = 0; at < text.size();) {
    size_t close = text[at] == '[' ? text.find_first_of("]\n", at) : std::string::npos;
    if (close != std::string::npos && text[close] == ']')
      at = close + 1;
    else
      kept += text[at++];
  }
  replace_all(kept, "  ", " ");
  return kept;
}

// Of ASCII letters; HellaSwag has hardly any others.
std::string capitalized(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    char& c = text[i];
    if (i == 0 && c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    if (i > 0 && c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return text;
}

Question read_hellaswag(std::string_view line, const std::string& place) {
  Fields fields(line, place);
  bool in_parts = fields.has("ctx_a") && fields.has("ctx_b");
  std::string context =
      in_parts ? fields.text({"ctx_a"}) + " " + capitalized(fields.text({"ctx_b"})) : fields.text({"ctx"});
  context = without_brackets(fields.text({"activity_label"}) + ": " + context);
  Question question{.place = place};
  for (const std::string& ending : fields.texts({"endings"}))
    question.texts.push_back({context, " ", without_brackets(ending)});  // as lm-evaluation-harness, whatever is there
  question.right = fields.index({"label"}, question.texts.size());
  return question;
}

// "The last word" is what stands behind the last blank.
Question read_lambada(std::string_view line, const std::string& place) {
  Fields fields(line, place);
  std::string text = stripped(fields.text({"text"}));
  size_t blank = text.find_last_of(" \n\t\r");
  if (blank == std::string::npos) fields.refuse("a text of two words or more in \"text\"", json(text).dump());
  return {{{text.substr(0, blank), "", text.substr(blank)}}, 0, place};
}

// Choices behind one context, or one completion behind several contexts.
Question read_choices(std::string_view line, const std::string& place) {
  Fields fields(line, place);
  Question question{.place = place};
  if (fields.has("contexts") || fields.has("context_options")) {
    std::string completion = fields.text({"completion", "continuation"});
    for (const std::string& context : fields.texts({"contexts", "context_options"}))
      question.texts.push_back(asked(context, completion));
  } else {
    std::string context = fields.text({"context", "question", "query"});
    for (const std::string& choice : fields.texts({"choices"})) question.texts.push_back(asked(context, choice));
  }
  question.right = fields.index({"label", "gold", "answer"}, question.texts.size());
  return question;
}

Question read_completion(std::string_view line, const std::string& place) {
  Fields fields(line, place);
  return {{asked(fields.text({"context", "prompt"}), fields.text({"completion", "continuation"}))}, 0, place};
}

constexpr TaskFormat kFormats[] = {
    {"hellaswag", "HellaSwag's lines: activity_label, ctx (or ctx_a and ctx_b), endings, label", Answer::kChoice,
     read_hellaswag},
    {"lambada", "a text a line, of which the last word is asked for", Answer::kCompletion, read_lambada},
    {"choices", "context and choices, or contexts and completion; label says which is right, counted from 0",
     Answer::kChoice, read_choices},
    {"completions", "context and completion", Answer::kCompletion, read_completion},
    {"text", "documents of any format: perplexity and bits per byte", Answer::kText, nullptr},
};

}  // namespace

std::span<const TaskFormat> task_formats() { return kFormats; }

}  // namespace tokamak
