// What of a step no kernel of the backend computes: it runs on the host by its op's reference, which is right and slow.
// Tests: tests/run/reference_nodes_test.cpp.
#pragma once

#include "compile/compiled_step.h"

namespace tokamak {

struct ReferenceNode {
  const Graph* graph = nullptr;
  int node = 0;
};

/// Those of a step, as far as it is known without a device.
std::vector<ReferenceNode> find_reference_nodes(const CompiledStep& step, const KernelSet& kernels);

/// Their kernels by name, each with its number: "attention x12, attention_grad x12".
std::string list_kernels(const std::vector<ReferenceNode>& nodes);

/// A line that says so; empty when there are none.
std::string reference_warning(const std::vector<ReferenceNode>& nodes);

/// Throws UserError that names the first few, when there are any.
void refuse_reference_nodes(const std::vector<ReferenceNode>& nodes);

}  // namespace tokamak
