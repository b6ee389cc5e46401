// What a run that goes on is asked to do in another way than it began. Tests: tests/run/run_changes_test.cpp,
// tests/e2e/resume_test.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

struct RunConfig;

/// A sentence with every setting that differs and may change what comes out, and with what the learning rate of step
/// `step` (counted from 0) becomes; empty when nothing differs. Both are settled (compile/resolved_run.h).
std::string describe_changes(const RunConfig& was, const RunConfig& is, int64_t step);

/// UserError for settings that the run's parameters, states and place in its data do not go on with.
void require_same_run(const RunConfig& was, const RunConfig& is);

}  // namespace tokamak
