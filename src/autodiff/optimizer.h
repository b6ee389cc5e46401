// The optimizer update as graph nodes: gradient accumulation, clipping by the global norm, AdamW.
#pragma once

#include "graph/builder.h"

#include <optional>

namespace tokamak {

struct OptimizerConfig;

/// What one update acts on; gradients as `differentiate` gives them (none may be kNoValue).
struct Gradients {
  std::vector<ValueId> parameters;
  std::vector<ValueId> grads;
};

/// Dynamic loss scaling (Micikevicius et al., "Mixed precision training", 2018), so that small gradients survive in
/// f16. All of it is state of the graph: scaler.scale, scaler.good_steps (since the scale changed) and scaler.skipped,
/// f32[].
struct LossScaling {
  double growth_interval = 2000;  // steps without overflow after which the scale doubles
};

/// The loss times scaler.scale: what to differentiate.
ValueId scaled_loss(GraphBuilder& g, ValueId loss);

/// Appends the whole update, tagged #optimizer: states step, adam.m.<name>, adam.v.<name>; input lr f32[]; result
/// grad_norm (before clipping). The gradients are multiplied by `grad_scale` first. Weight decay applies to parameters
/// of two dims or more.
///
/// With `scaling` the gradients are those of the scaled loss. A step in which any is infinite or NaN is skipped: it
/// leaves parameters, moments and step as they were, and halves the scale, which doubles after growth_interval good
/// steps. Results then are grad_norm of the unscaled gradients (not finite when skipped), loss_scale (the one that was
/// used) and skipped (how many steps were, this one included).
void append_adamw(GraphBuilder& g, const Gradients& gradients, const OptimizerConfig& config, double grad_scale,
                  const std::optional<LossScaling>& scaling = {});

/// For accumulation over micro-batches: states grad.<name>, to which the gradients are added.
void append_accumulation(GraphBuilder& g, const Gradients& gradients);

/// The update alone, from accumulated gradients grad.<name>, which it sets back to zero; `parameters` as (name, type).
Graph accumulated_update_graph(const std::vector<std::pair<std::string, ValueType>>& parameters,
                               const OptimizerConfig& config, int64_t micro_batches,
                               const std::optional<LossScaling>& scaling = {});

}  // namespace tokamak
