// The cost model: what a kernel or a collective takes on a target, in one place. Passes that choose or reorder, the
// planner and all that predicts ask here. Tests: tests/cost/price_test.cpp.
#pragma once

#include "graph/op_def.h"
#include "graph/platform.h"
#include "ops/number_format.h"

namespace tokamak {

/// What a node costs, in seconds of each kind and all together.
struct Price {
  Cost cost;
  double arithmetic = 0;      // its FLOPs, each kind at its rate (cost/flop_rate.h)
  double memory = 0;          // its bytes, faster where all of them fit into the cache
  double draws = 0;           // its random numbers, beside the longer of those two
  double link = 0;            // what a collective sends
  double fixed = 0;           // the launch; of a collective the latency of its axis' links
  double seconds = 0;         // of the node
  bool memory_bound = false;  // memory takes longer than arithmetic
  double taken_share = 0;     // of a collective: of the device's work, which it takes from what runs beside it
};

/// By the target's rates alone, which all ranks have from one: the larger of arithmetic and memory, or of link and
/// memory, and what is fixed. Passes ask so. A view takes nothing.
Price price(const Graph& graph, const Node& node, const Target& target);

/// The same, with seconds as they were measured where they were.
Price price(const Graph& graph, const Node& node, const Platform& platform);

/// Share of the device's work that a collective over the axis takes from what runs beside it, whatever it moves in
/// memory.
double units_taken(const Target& target, const std::string& axis);

/// What a product of so many FLOPs takes in a format, before anyone makes it: without its launch.
double product_seconds(double flops, NumberFormat format, const Target& target);

/// What so many kernels take that only move bytes, read and written, from memory and to it.
double copies_seconds(double bytes, double kernels, const Target& target);

/// What so many bytes take from one stage of a pipeline to the next.
double transfer_seconds(double bytes, const std::string& axis, const Target& target);

}  // namespace tokamak
