// The ordered table of all passes; this file is where to read what happens to a graph, and when.
#include "passes/form_groups.h"
#include "passes/fuse.h"

namespace tokamak {
namespace {

using C = const PassContext&;

bool always(C) { return true; }

constexpr Pass kPasses[] = {
    {"form_groups", Stage::kStep, Numerics::kExact, always, form_groups,
     "gives every pointwise op, reduction and composite its kernel template"},
    {"fuse", Stage::kStep, Numerics::kExact, [](C c) { return c.options.fuse; }, fuse,
     "merges groups, so that values between them never reach memory; matmuls take bias and GELU"},
};

}  // namespace

std::span<const Pass> pipeline() { return kPasses; }

}  // namespace tokamak
