// A graph run once by the interpreter on tensors that are known by name.
#pragma once

#include "ops/interpret.h"

#include <map>
#include <string>
#include <vector>

namespace tokamak::test {

using Values = std::map<std::string, HostTensor>;

/// The results. What `values` lacks is zero; parameters and states live in it.
inline std::vector<HostTensor> run_graph(const Graph& graph, Values& values) {
  std::vector<HostTensor> arguments;
  for (const Argument& argument : graph.arguments()) {
    HostTensor& value = values[argument.name];
    if (value.data.empty()) value = HostTensor(graph.type(argument.value));
    arguments.push_back(value);
  }
  Interpretation out = interpret(graph, arguments);
  for (size_t u = 0; u < out.updates.size(); ++u)
    values[graph.argument_of(graph.updates()[u].target)->name] = out.updates[u];
  return out.results;
}

}  // namespace tokamak::test
