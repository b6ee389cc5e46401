// Numbers that one should be able to work out before one trains, each with its formula and the value that is known for
// it: `tokamak plan --examples`. Tests: tests/advise/examples_test.cpp.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

struct Example {
  std::string what;
  std::string formula;
  double value = 0;
  double known = 0;  // as it is taught or published, rounded
  std::string unit;  // of both
};

std::vector<Example> plan_examples();

/// The formula of FLOPs, the table of those, and Megatron's weak scaling, row by row with each error.
std::string format_examples();

}  // namespace tokamak
