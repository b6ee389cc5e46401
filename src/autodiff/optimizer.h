// The update of a step as graph nodes, in four parts: reduce the gradients to those of the whole step, their norm,
// clipping, and for each parameter the optimizer's rule. Tests: tests/autodiff/optimizer_test.cpp.
#pragma once

#include "autodiff/gradient_norm.h"
#include "autodiff/loss_scaling.h"
#include "autodiff/optimizer_rule.h"
#include "graph/mesh.h"

#include <optional>
#include <set>

namespace tokamak {

/// What one update acts on; gradients as `differentiate` gives them (none may be kNoValue).
struct Gradients {
  ValueIds parameters;
  ValueIds grads;
};

/// Where a pipeline's stage has some of the parameters: what its update does together with the other stages'.
struct OtherStages {
  MeshAxis axis;                 // of the stages, over which squares of gradients are added to one norm
  const Graph* model = nullptr;  // with the parameters of all stages; where norms have pieces
  std::set<std::string> shared;  // parameters that another stage has too: states peer_grad.<name> hold its gradients,
                                 // which are added to this one's
  std::set<std::string> uncounted;  // those of them whose squares the other stage counts
  std::set<std::string> reduced;    // parameters whose gradients the stage's last backward pass has added up over
                                    // ranks: they are in states reduced.<name>
  bool has_loss = false;            // this stage has the state that append_loss_sum adds to: result loss of all stages
};

/// Appends the whole update, in the update phase: state step, those of each parameter's rule; input lr f32[];
/// result grad_norm (before clipping). The gradients are sums over `micro_batches`, of which the mean counts. Weight
/// decay applies to matrices, as the parameters' roles say. With optimizer.ema there are states ema.<name> as well: the
/// mean of the parameters over updates, which begins with those of the first one.
///
/// Where a gradient, or their norm, is infinite or NaN, the update is not applied: it leaves parameters, the rule's
/// states and step as they were, and tells so by a grad_norm that is not finite.
///
/// With `scaling` the gradients are those of the scaled loss; grad_norm is that of the unscaled ones, and there are the
/// results of append_next_scale.
void append_update(GraphBuilder& g, const Gradients& gradients, const Optimizer& optimizer, int64_t micro_batches = 1,
                   const std::optional<LossScaling>& scaling = {}, const OtherStages& others = {},
                   const NormPieces& pieces = {});

/// For accumulation over micro-batches: states grad.<name>, to which the gradients are added.
void append_accumulation(GraphBuilder& g, const Gradients& gradients);

/// The same for a pipeline's loss: state loss.
void append_loss_sum(GraphBuilder& g, ValueId loss);

/// For the last micro-batch of a step: the graph with the sums of the others added to the gradients, each as soon as it
/// is there, so that its sum over ranks can go on beside the rest of the backward pass. `gradients` become those of the
/// step; states grad.<name> are set back to zero.
Graph with_sums_added(const Graph& graph, Gradients& gradients);

/// The same where the update comes behind it as a program of its own: the gradients of the step are left in states
/// reduced.<name>. States grad.<name> keep the sums, onto which products add as in every other micro-batch.
Graph with_sums_reduced(const Graph& graph, const Gradients& gradients);

/// The same as a program of its own, for parameters of `model` whose gradients are all there.
Graph sync_gradients_graph(const Graph& model);

/// The update of all parameters of `model` alone, from accumulated gradients grad.<name>, or those in reduced.<name>;
/// it sets the former back to zero.
Graph accumulated_update_graph(const Graph& model, const Optimizer& optimizer, int64_t micro_batches,
                               const std::optional<LossScaling>& scaling = {}, const OtherStages& others = {});

/// Prefixes of the states with sums of a parameter's gradients: this program's, and those of another use of it.
inline constexpr std::string_view kGradientSum = "grad", kPeerGradient = "peer_grad";

/// Prefix of the states with the parameters' means over steps (optimizer.ema).
inline constexpr std::string_view kWeightAverage = "ema";

/// Name of the state into which another stage's gradient of a shared parameter comes, and of the one where it lies
/// there.
std::string peer_gradient_state(const std::string& parameter);
std::string gradient_sum_state(const std::string& parameter);

/// The parameters whose gradients a graph has as states reduced.<name>.
std::set<std::string> reduced_parameters(const Graph& graph);

}  // namespace tokamak
