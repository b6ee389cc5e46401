// config -> model graph -> passes -> gradients -> update -> passes -> plan: the flow of the whole system in one file.
// A pure function of its inputs; nothing is allocated, so that it works for any size on any machine.
#pragma once

#include "autodiff/slots.h"
#include "compile/compiled_step.h"
#include "config/config.h"

namespace tokamak {

/// Tokens of one optimizer step / tokens of one micro-batch; UserError when they do not divide.
int64_t count_micro_batches(const RunConfig& config);

/// UserError when the mesh has more ranks: for what runs on one alone.
void require_one_rank(const RunConfig& config);

/// `auto` becomes what is fastest on the target; mesh.slots is said, and train.batch is then what one run of all ranks
/// takes of a step; tf32 becomes fp32 on a target without units for it, and there are no
/// more streams than the target has.
RunConfig resolve(RunConfig config, const Target& target);

/// Of a resolved configuration; without slots one of one rank.
Slots slots_of(const RunConfig& config);

/// Without a pipeline; compile/compiled_run.h is for both.
CompiledStep compile_step(const RunConfig& config, const Platform& platform, const PassObserver& observer = {});

/// What steps are compiled with: what passes have to know of the run; one program by the passes of `stage`, and its
/// plan; none without fp16.
PassContext context_of(const RunConfig& config, const Platform& platform);
CompiledGraph compile_program(Graph graph, const PassContext& context, Stage stage, const PassObserver& observer);
std::optional<LossScaling> loss_scaling(const RunConfig& config);

/// The sequences that the graph of a program is for: of train.batch, or with slots those of one data rank, whose inputs
/// are its own.
int64_t sequences_of_program(const RunConfig& config);

/// Whether the programs of a step are in halves (passes/halves.h).
bool computes_in_halves(const RunConfig& config);

/// Whether their launches are to be recorded. Not in halves: replayed, launches wait that do not when they are launched
/// one by one (bench/results/2026-11-25-h100-x2-halves.txt).
bool records_runs(const RunConfig& config);

/// The loss of a batch without dropout; with slots, of one slot on each data rank.
CompiledGraph compile_evaluation(const RunConfig& config, const Platform& platform);

/// Inference graphs through the same passes (precision, fusion, padding).
CompiledGraph compile_inference(Graph graph, const RunConfig& config, const Platform& platform);

/// The same for parameters of one's own: those that are only read in a low type are of that type. Those that this graph
/// does not read are of the type that they have in `other`, which shares them. `mesh`: what it is divided over, of axis
/// `tensor` alone; none: one rank.
CompiledGraph compile_generation(Graph graph, const RunConfig& config, const Platform& platform,
                                 const Graph* other = nullptr, const Mesh& mesh = {});

}  // namespace tokamak
