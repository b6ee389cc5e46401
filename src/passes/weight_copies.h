// Which copies of parameters live for a whole step anyway, so that they may be made together at its start.
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// The value of which this is a reshape, or of a reshape of it.
ValueId behind_views(const Graph& graph, ValueId value);

/// Whether the value is a parameter.
bool is_parameter(const Graph& graph, ValueId value);

/// Where it has one, copies live until it reads them.
bool has_backward(const Graph& graph);

}  // namespace tokamak
