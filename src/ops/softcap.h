// The soft cap of logits: cap tanh((x + shift) / width), whose values stay within the cap (Gemma Team, "Gemma 2", 2024,
// with no shift and the cap as width). 2 cap times the logistic function of 2 (x + shift) / width, another form that
// is in use, differs from it by a constant, which no probability sees. Tests: tests/ops/softcap_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class Attrs;
class GraphBuilder;

struct Softcap {
  double cap = 0;    // 0: none
  double shift = 0;  // of the logits, before
  double width = 0;  // 0: the cap
  bool operator==(const Softcap&) const = default;

  double steepness() const { return 1 / (width > 0 ? width : cap); }
};

/// tanh((x + shift) / width); needs a cap.
ValueId softcap_tanh(GraphBuilder& g, ValueId x, const Softcap& softcap);
/// The capped logits; without a cap x itself.
ValueId softcap(GraphBuilder& g, ValueId x, const Softcap& softcap);

/// The same of one number, and its derivative (1 without a cap).
double softcap(double x, const Softcap& softcap);
double softcap_slope(double x, const Softcap& softcap);

/// As attributes softcap, softcap_shift and softcap_width of a node; what is 0 is left out.
void set_softcap(Attrs& attrs, const Softcap& softcap);
Softcap softcap_of(const Attrs& attrs);

}  // namespace tokamak
