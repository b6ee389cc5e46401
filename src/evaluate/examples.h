// Solved questions before a question, "few-shot". Tests: tests/evaluate/task_list_test.cpp.
#pragma once

#include "evaluate/task.h"

#include <vector>

namespace tokamak {

/// The first `asked` questions, each with `spec.shots` others of the same file before it, with their right answers, and
/// `spec.delimiter` behind each. Which ones goes by the question's place alone. UserError where the file has too few.
std::vector<Question> with_examples(const std::vector<Question>& all, size_t asked, const TaskSpec& spec);

}  // namespace tokamak
