// The optimizer update as graph nodes: gradient accumulation, clipping by the global norm, AdamW.
#pragma once

#include "config/config.h"
#include "graph/builder.h"

namespace tokamak {

/// What one update acts on; gradients as `differentiate` gives them (none may be kNoValue).
struct Gradients {
  std::vector<ValueId> parameters;
  std::vector<ValueId> grads;
};

/// Appends the whole update, tagged #optimizer: states step, adam.m.<name>, adam.v.<name>; input lr f32[]; result
/// grad_norm (before clipping). The gradients are multiplied by `grad_scale` first. Weight decay applies to parameters
/// of two dims or more.
void append_adamw(GraphBuilder& g, const Gradients& gradients, const OptimizerConfig& config, double grad_scale);

/// For accumulation over micro-batches: states grad.<name>, to which the gradients are added.
void append_accumulation(GraphBuilder& g, const Gradients& gradients);

/// The update alone, from accumulated gradients grad.<name>, which it sets back to zero; `parameters` as (name, type).
Graph accumulated_update_graph(const std::vector<std::pair<std::string, ValueType>>& parameters,
                               const OptimizerConfig& config, int64_t micro_batches);

}  // namespace tokamak
