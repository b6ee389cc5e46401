// A user's list of tasks, one in a line of JSON: what CORE and others like it average over.
// Tests: tests/evaluate/task_list_test.cpp.
#pragma once

#include "evaluate/task.h"

#include <vector>

namespace tokamak {

/// Lines {"kind": "choices", "file": "arc.jsonl", "name": "arc", "shots": 10, "chance": 0.25, "delimiter": "\n\n"}, of
/// which kind and file have to be there; files are relative to the list. UserError with the line where one is not so.
std::vector<TaskSpec> read_task_list(const std::filesystem::path& file);

/// KIND or KIND@SHOTS, and the file. UserError where it is another form.
TaskSpec make_task_spec(const std::string& kind, const std::filesystem::path& file, const std::string& asked);

}  // namespace tokamak
