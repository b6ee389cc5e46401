// EXPECT on how the program refuses a mistake: exit status 1, and one message with each of the given pieces in it.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "tests/support/run_program.h"

namespace tokamak {

inline void expect_refused(const ProgramResult& result, std::initializer_list<std::string> pieces) {
  EXPECT_EQ(result.status, 1) << result.out << result.err;
  EXPECT_NE(result.err.find("error: ["), std::string::npos) << result.err;
  for (const std::string& piece : pieces)
    EXPECT_NE(result.err.find(piece), std::string::npos) << "message: " << result.err << "\nlacks: " << piece;
}

}  // namespace tokamak
