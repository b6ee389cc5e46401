// What `eval` prints: a line for people of one run, a table of several or of tasks, or JSON.
#pragma once

#include "evaluate/task.h"
#include "run/evaluator.h"

#include <string>
#include <vector>

namespace tokamak {

/// Of one run.
struct EvalReport {
  std::string path;  // of its checkpoint
  std::string name;  // as the user named it
  int64_t step = 0;
  std::string split;                     // of the validation
  std::optional<Evaluation> validation;  // or
  std::vector<TaskResult> tasks;
};

void print_validation(const EvalReport& report);

/// A row for each number, a column for each run.
void print_table(const std::vector<EvalReport>& reports);

/// An object on a line.
void print_json(const EvalReport& report);

}  // namespace tokamak
