// The ordered table of all passes; this file is where to read what happens to a graph, and when.
#include "passes/form_groups.h"

namespace tokamak {
namespace {

using C = const PassContext&;

bool always(C) { return true; }

constexpr Pass kPasses[] = {
    {"form_groups", Stage::kStep, Numerics::kExact, always, form_groups,
     "gives every pointwise op, reduction and composite its kernel template"},
};

}  // namespace

std::span<const Pass> pipeline() { return kPasses; }

}  // namespace tokamak
