// How a backend that chooses kernels by measuring them is tuned; see tune/tune.h.
#pragma once

#include "graph/graph.h"

#include <span>
#include <string>

namespace tokamak {

/// Takes the kernels of a step before they are compiled one by one; a backend does, and what compiles without a device.
class CodeAhead {
 public:
  virtual ~CodeAhead() = default;

  /// Begins in the background what Backend::compile of the node will need, where that takes long and nothing is
  /// measured in it.
  virtual void compile_ahead(const Graph& graph, const Node& node) = 0;
};

class KernelTuning : public CodeAhead {
 public:
  /// A step that is going to be compiled, or one like it, and the seconds that each of its nodes is predicted to take
  /// (0: those of no kernel): a search for a kernel's algorithm takes the longer the more of the step is in it.
  virtual void expect(const Graph& step, std::span<const double> seconds) = 0;

  /// The algorithms that were chosen by measurement for the kernels compiled so far, and those adopted, as text.
  virtual std::string choices() const = 0;

  /// Takes over what choices() gave in an earlier process; it comes before any cache. False for text that is damaged or
  /// of another kind of device or library.
  virtual bool adopt_choices(const std::string& text) = 0;
};

}  // namespace tokamak
