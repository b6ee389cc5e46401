// What ranks must have in common, and what one of them decides for all. Tests: tests/backend/ranks/agreement_test.cpp.
#pragma once

#include "backend/communicator.h"

namespace tokamak {

/// Something that must be the same on all ranks: {"configuration", its text}, {"program", its version}.
struct Fact {
  std::string name;
  std::string value;
};

/// Waits for all ranks. A UserError, the same on all of them, names the ranks that differ from most others, and in
/// what.
void require_agreement(Communicator& ranks, std::span<const Fact> facts);

/// What rank `root` has measured or decided, on all ranks.
std::string adopt(Communicator& ranks, std::string_view mine, int root = 0);

}  // namespace tokamak
