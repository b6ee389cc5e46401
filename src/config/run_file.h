// What a user may name as a run file: TOML, JSON as a run's config.json has it, or the folder of a run that goes on.
// Tests: tests/config/run_file_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "config/assignment.h"

namespace tokamak {

struct RunFileContent {
  std::vector<Assignment> assignments;
  bool is_json = false;  // as runs write them, with every key
};

/// The keys of the file; of a folder those of its config.json, with the folder as train.out. UserErrors are those of
/// parse_toml and parse_json.
RunFileContent read_run_file(const std::vector<Field>& fields, const std::string& path);

}  // namespace tokamak
