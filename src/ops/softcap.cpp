#include "ops/softcap.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <cmath>

namespace tokamak {

ValueId softcap_tanh(GraphBuilder& g, ValueId x, const Softcap& softcap) {
  if (softcap.shift != 0) x = add(g, x, constant(g, softcap.shift));
  return tanh(g, mul(g, x, constant(g, softcap.steepness())));
}

ValueId softcap(GraphBuilder& g, ValueId x, const Softcap& softcap) {
  return softcap.cap > 0 ? mul(g, softcap_tanh(g, x, softcap), constant(g, softcap.cap)) : x;
}

double softcap(double x, const Softcap& softcap) {
  return softcap.cap > 0 ? softcap.cap * std::tanh((x + softcap.shift) * softcap.steepness()) : x;
}

double softcap_slope(double x, const Softcap& softcap) {
  if (softcap.cap == 0) return 1;
  double t = std::tanh((x + softcap.shift) * softcap.steepness());
  return softcap.cap * softcap.steepness() * (1 - t * t);
}

void set_softcap(Attrs& attrs, const Softcap& softcap) {
  if (softcap.cap > 0) attrs.set("softcap", softcap.cap);
  if (softcap.shift != 0) attrs.set("softcap_shift", softcap.shift);
  if (softcap.width > 0) attrs.set("softcap_width", softcap.width);
}

Softcap softcap_of(const Attrs& attrs) {
  return {attrs.get_double("softcap", 0), attrs.get_double("softcap_shift", 0), attrs.get_double("softcap_width", 0)};
}

}  // namespace tokamak
