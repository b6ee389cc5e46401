// A task: questions of a file, what a model has to score for them, and what the scores mean. docs/evaluation.md has the
// kinds. Tests: tests/evaluate/task_test.cpp.
#pragma once

#include "data/tokenizer.h"
#include "evaluate/scorer.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// One piece of text behind another, as a model is to judge it.
struct AskedText {
  std::string context, between, continuation;  // what is between is scored, but is no part of the continuation's length
};

/// One or several texts to score; of several the likeliest is what the model answers.
struct Question {
  std::vector<AskedText> texts;
  int64_t right = 0;  // which of them, where there are several
  std::string place;  // file and line, for messages
};

enum class Answer {
  kChoice,      // one of several texts
  kCompletion,  // is the continuation what the model would write?
  kText,        // how well is a text predicted?
};

/// Reads an object of a JSON line.
struct TaskFormat {
  std::string_view name;
  std::string_view description;  // a line for --help
  Answer answer;
  Question (*read)(std::string_view line, const std::string& place);  // null: documents of any format
};

std::span<const TaskFormat> task_formats();

/// What a user named: KIND:FILE, KIND@SHOTS:FILE, or a line of a list of tasks.
struct TaskSpec {
  const TaskFormat* format = nullptr;
  std::filesystem::path file;
  std::string name;                // of the results: the kind where that is a benchmark's, else the file's
  int64_t shots = 0;               // other questions of the file, with their answers, before each
  std::string delimiter = "\n\n";  // behind each of these
  double chance = -1;              // accuracy by guessing, which is 0 when centred; -1: one of the choices
};

/// Those named, and those of lists (list:FILE). UserErrors: another form, an unknown kind, a file that is not there,
/// two tasks with one name.
std::vector<TaskSpec> parse_tasks(const std::vector<std::string>& texts);

struct TaskOptions {
  int64_t limit = 0;          // questions from the beginning of each file; 0: all
  bool cut_contexts = false;  // a context that is too long loses its beginning; else it is an error
};

/// Read, checked and in tokens.
struct Task {
  TaskSpec spec;
  std::vector<Continuation> requests;  // of all questions, in order
  std::vector<Question> questions;     // of kText none
  int64_t text_bytes = 0;              // of kText
  int64_t cut = 0;                     // contexts that lost their beginning
};

/// UserErrors name the file and the line: wrong fields, too few choices, what does not fit into `context` tokens
/// (model.context), a text without a token. A continuation's tokens are what the whole text has beyond those of its
/// context, white space at the context's end counted with it; an empty context is the mark between documents.
Task load_task(const TaskSpec& spec, const Tokenizer& tokenizer, int64_t context, const TaskOptions& options = {});

/// A number that a task gives.
struct Metric {
  std::string name;
  double value = 0;
  double error = 0;  // standard error; 0: none is told
};

struct TaskResult {
  std::string name;
  std::string kind;
  int64_t questions = 0;        // of kText documents' tokens
  std::vector<Metric> metrics;  // the first is the one to look at
};

/// `scores`: of the task's requests.
TaskResult judge(const Task& task, std::span<const Score> scores);

/// Of a question with several texts: the likeliest as it is, by the bytes of the continuations, and by their tokens.
struct Chosen {
  size_t plain = 0, by_bytes = 0, by_tokens = 0;
};
Chosen choose(const Question& question, std::span<const Score> scores, std::span<const Continuation> requests);

/// As CORE (Li et al., "DataComp-LM", 2024) averages tasks of several sizes: what chance would give is 0, all right
/// is 1. CORE itself chooses by tokens. Empty where no task has an accuracy.
std::vector<Metric> centred_averages(std::span<const TaskResult> results);

}  // namespace tokamak
