// From a task's file to what a model has to score.
#include "evaluate/task.h"

#include "base/error.h"
#include "data/open_source.h"
#include "data/sources/byte_stream.h"
#include "evaluate/examples.h"
#include "evaluate/task_list.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <set>

namespace tokamak {
namespace {

// Calls for each line that is not blank, until it says false.
void for_each_line(const std::filesystem::path& file,
                   const std::function<bool(std::string_view line, const std::string& place)>& take) {
  ByteBuffer buffer(open_bytes(file, {}));
  int64_t number = 0;
  for (bool more = true; more;) {
    size_t end, searched = 0;
    while ((end = buffer.view().find('\n', searched)) == std::string_view::npos) {
      searched = buffer.view().size();
      if (!(more = buffer.fill())) break;
    }
    std::string_view line = buffer.view().substr(0, end);
    ++number;
    bool is_blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
    if (!is_blank && !take(line, fmt::format("{} line {}", file.string(), number))) return;
    buffer.consume(std::min(line.size() + 1, buffer.view().size()));
  }
}

class TaskLoader {
 public:
  TaskLoader(const TaskSpec& spec, const Tokenizer& tokenizer, int64_t context, const TaskOptions& options)
      : tokenizer_(tokenizer), encoder_(tokenizer), context_(context), options_(options) {
    task_.spec = spec;
  }

  Task load() {
    task_.spec.format->answer == Answer::kText ? load_text() : load_questions();
    if (task_.requests.empty())
      user_error("[eval] {}: expected {}, got none", task_.spec.file.string(),
                 task_.spec.format->answer == Answer::kText ? "text" : "questions");
    return std::move(task_);
  }

 private:
  void load_questions() {
    const TaskSpec& spec = task_.spec;
    auto wanted = size_t(options_.limit > 0 ? options_.limit : std::numeric_limits<int64_t>::max());
    for_each_line(spec.file, [&](std::string_view line, const std::string& place) {
      Question question = spec.format->read(line, place);
      for (const AskedText& text : question.texts)
        if (text.continuation.find_first_not_of(" \n\t\r") == std::string::npos)
          user_error("[eval] {}: expected text to score, got {} that is empty", place,
                     question.texts.size() > 1 ? "a choice" : "a completion");
      task_.questions.push_back(std::move(question));
      return spec.shots > 0 || task_.questions.size() < wanted;  // examples are of the whole file
    });
    if (spec.shots > 0 && !task_.questions.empty()) task_.questions = with_examples(task_.questions, wanted, spec);
    for (const Question& question : task_.questions)
      for (const AskedText& text : question.texts)
        task_.requests.push_back(fitted(encoded(text, question.place), question.place));
  }

  // White space that ends a context belongs to the word behind it, as tokenizers of this kind have it.
  Continuation encoded(const AskedText& text, const std::string& place) {
    size_t end = text.context.find_last_not_of(" \n\t\r") + 1;  // 0: there is nothing else
    std::vector<int32_t> context, all;
    encoder_.append(std::string_view(text.context).substr(0, end), context);
    encoder_.append(text.context + text.between + text.continuation, all);
    size_t shared = std::min(context.size(), all.size());
    std::vector<int32_t> rest(all.begin() + int64_t(shared), all.end());
    if (rest.empty()) user_error("[eval] {}: expected a continuation that adds tokens to its context, got none", place);
    if (context.empty()) context = {mark(place)};
    return {std::move(context), std::move(rest)};
  }

  Continuation fitted(Continuation one, const std::string& place) {
    int64_t most = context_ + 1, total = int64_t(one.context.size() + one.tokens.size());
    if (int64_t(one.tokens.size()) > context_)
      user_error(
          "[eval] {}: expected a continuation of at most model.context = {} tokens, got {}; shorten it, or leave the "
          "line out",
          place, context_, one.tokens.size());
    if (total <= most) return one;
    if (!options_.cut_contexts)
      user_error(
          "[eval] {}: expected at most model.context = {} tokens before the last one, got {}; leave the line out, or "
          "let such contexts lose their beginning (of eval --cut-contexts, of train --train.tasks_cut_contexts)",
          place, context_, total - 1);
    one.context.erase(one.context.begin(), one.context.begin() + (total - most));
    ++task_.cut;
    return one;
  }

  int32_t mark(const std::string& place) const {
    if (!tokenizer_.has_end_of_text())
      user_error(
          "[eval] {}: expected a context, or a vocabulary with a mark between documents, which would stand for it; "
          "got neither",
          place);
    return tokenizer_.end_of_text();
  }

  void load_text() {
    std::unique_ptr<Source> source = open_source(task_.spec.file, {});
    std::vector<int32_t> ids;
    int64_t documents = 0;
    for (Document document; source->next(document);) {
      if (document.text.empty())
        user_error("[eval] {}: expected text, got tokens; `tokamak eval --data={}` takes those", source->name(),
                   task_.spec.file.string());
      encoder_.append(document.text, ids);
      task_.text_bytes += int64_t(document.text.size());
      if (document.continues) continue;
      add_windows(ids);
      ids.clear();
      if (++documents == options_.limit) return;
    }
    add_windows(ids);
  }

  // Each token once, with as many before it as windows one behind the other give; the last one goes back as far as it
  // can. So lm-evaluation-harness has it (loglikelihood_rolling).
  void add_windows(const std::vector<int32_t>& ids) {
    std::vector<int32_t> all = {mark(task_.spec.file.string())};
    all.insert(all.end(), ids.begin(), ids.end());
    int64_t count = int64_t(ids.size());
    for (int64_t done = 0; done < count;) {
      int64_t end = std::min(done + context_, count), begin = std::max<int64_t>(end - context_, 0);
      auto at = [&](int64_t i) { return all.begin() + i; };
      task_.requests.push_back({{at(begin), at(done + 1)}, {at(done + 1), at(end + 1)}});
      done = end;
    }
  }

  const Tokenizer& tokenizer_;
  Encoder encoder_;
  int64_t context_;
  TaskOptions options_;
  Task task_;
};

std::string known_kinds() {
  std::string text;
  for (const TaskFormat& format : task_formats()) text += fmt::format("{}{}", text.empty() ? "" : ", ", format.name);
  return text;
}

// The file's name up to its first dot, but for a kind that is a benchmark by itself.
std::string name_of(const TaskFormat& format, const std::filesystem::path& file) {
  if (format.name == "hellaswag" || format.name == "lambada") return std::string(format.name);
  std::string name = file.filename().string();
  return name.substr(0, std::max<size_t>(name.find('.'), 1));
}

}  // namespace

std::vector<TaskSpec> parse_tasks(const std::vector<std::string>& texts) {
  std::vector<TaskSpec> specs;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    size_t colon = text.find(':');
    std::string kind = text.substr(0, colon), file = colon == text.npos ? "" : text.substr(colon + 1);
    if (kind == "list" && !file.empty()) {
      std::vector<TaskSpec> listed = read_task_list(file);
      specs.insert(specs.end(), listed.begin(), listed.end());
    } else {
      specs.push_back(make_task_spec(kind, file, text));
    }
  }
  for (const TaskSpec& spec : specs)
    if (!names.insert(spec.name).second)
      user_error(
          "[eval] expected tasks with names of their own, got two that are called {}; rename a file, or name them in a "
          "list (list:FILE)",
          spec.name);
  return specs;
}

TaskSpec make_task_spec(const std::string& kind, const std::filesystem::path& file, const std::string& asked) {
  size_t at = kind.find('@');
  std::string name = kind.substr(0, at);
  std::span<const TaskFormat> formats = task_formats();
  auto format = std::find_if(formats.begin(), formats.end(), [&](const TaskFormat& one) { return one.name == name; });
  if (format == formats.end() || file.filename().empty())
    user_error(
        "[eval] expected a task as KIND:FILE with one of {}, or list:FILE, got \"{}\"; "
        "hellaswag:hellaswag_val.jsonl, say",
        known_kinds(), asked);
  TaskSpec spec{.format = &*format, .file = file, .name = name_of(*format, file)};
  if (at != kind.npos) {
    const char* end = kind.data() + kind.size();
    auto [stop, error] = std::from_chars(kind.data() + at + 1, end, spec.shots);
    if (error != std::errc() || stop != end || spec.shots < 0 || spec.shots > 1000 || format->answer == Answer::kText)
      user_error(
          "[eval] expected KIND@SHOTS with 0 to 1000 questions that stand before each, and none before texts, "
          "got \"{}\"",
          asked);
  }
  if (std::error_code error; !std::filesystem::is_regular_file(file, error))
    user_error("[eval] expected a file of {} questions, got none at {}", name, file.string());
  return spec;
}

Task load_task(const TaskSpec& spec, const Tokenizer& tokenizer, int64_t context, const TaskOptions& options) {
  return TaskLoader(spec, tokenizer, context, options).load();
}

}  // namespace tokamak
