// Tasks with a scorer: results, and of each question what was chosen. Tests: tests/e2e/tasks_test.cpp.
#pragma once

#include "evaluate/task.h"

#include <functional>

namespace tokamak {

/// Of a task while it is scored: what throws ends it.
using TaskProgress = std::function<void(const std::string& task, size_t done, size_t total)>;
using TaskScores = std::function<void(const Task& task, std::span<const Score> scores)>;

/// All tasks of these, read. UserErrors as of load_task().
std::vector<Task> load_tasks(const std::vector<TaskSpec>& specs, const Tokenizer& tokenizer, int64_t context,
                             const TaskOptions& options);

/// One after the other. `told` gets each task's scores; both functions may be empty.
std::vector<TaskResult> run_tasks(Scorer& scorer, std::span<const Task> tasks, const TaskProgress& progress,
                                  const TaskScores& told = {});

/// A line of JSON for each question of a task: what each text scored, and what was right and chosen.
std::string details_of(const Task& task, std::span<const Score> scores);

}  // namespace tokamak
