// The ordered table of all passes; this file is where to read what happens to a graph, and when.
#include "passes/any_order.h"
#include "passes/apply_recompute.h"
#include "passes/async_products.h"
#include "passes/async_scatters.h"
#include "passes/attention_float8.h"
#include "passes/attention_sums.h"
#include "passes/autocast.h"
#include "passes/bucket.h"
#include "passes/choose_recompute.h"
#include "passes/chunked_classifier.h"
#include "passes/count_saturated.h"
#include "passes/decompose_attention.h"
#include "passes/decompose_context.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/flash_attention.h"
#include "passes/float8_products.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "passes/fuse_prologues.h"
#include "passes/fused_optimizer.h"
#include "passes/gather_low.h"
#include "passes/join_gates.h"
#include "passes/join_pads.h"
#include "passes/join_projections.h"
#include "passes/low_parameters.h"
#include "passes/merge_adds.h"
#include "passes/merge_casts.h"
#include "passes/merge_float8.h"
#include "passes/overlap.h"
#include "passes/pad_heads.h"
#include "passes/pad_shards.h"
#include "passes/pad_vocab.h"
#include "passes/scatter_in_place.h"
#include "passes/shard.h"
#include "passes/split_reductions.h"
#include "passes/step_mesh.h"
#include "passes/view_slices.h"

namespace tokamak {
namespace {

using C = const PassContext&;

bool always(C) { return true; }
bool fuses(C c) { return is_enabled(c, "fuse"); }
bool low_precision(C c) { return is_low(c.options.precision); }
bool trains_low(C c) { return low_precision(c) && !c.low_parameters; }
bool on_mesh(C c) { return c.mesh.num_ranks() > 1; }
bool chunks_classifier(C c) { return c.target.chunked_classifier; }
bool low_on_mesh(C c) { return on_mesh(c) && low_precision(c); }
bool overlaps(C c) { return on_mesh(c) && c.target.streams > 1; }
bool is_async(C c) { return overlaps(c) && c.async_tensor; }
bool in_any_order(C c) { return !c.options.deterministic; }
bool recomputes(C c) { return c.options.memory_budget_gib > 0 || c.options.recompute != "auto"; }
bool has_buckets(C c) { return on_mesh(c) && c.bucket_mib > 0; }
bool low_generation(C c) { return c.low_parameters && low_precision(c); }
bool fuses_low(C c) { return fuses(c) && low_precision(c); }
bool fuses_prologues(C c) { return fuses(c) && c.target.matmul_prologue; }
bool float8_precision(C c) { return c.options.precision == Precision::kFp8 && !c.low_parameters; }
bool fuses_float8(C c) { return fuses(c) && float8_precision(c); }
bool trains_in_16_bits(C c) { return trains_low(c) && c.options.precision != Precision::kFp8; }
bool tf32_precision(C c) { return c.options.precision == Precision::kTf32; }

constexpr Pass kPasses[] = {
    {"pad_vocab", PassStage::kForward, Numerics::kTolerance, Effects::kKept, always, pad_vocab,
     "rounds the vocabulary up to a multiple that matmuls like; the loss does not change"},
    {"pad_heads", PassStage::kForward, Numerics::kTolerance, Effects::kKept, on_mesh, pad_heads,
     "adds heads and hidden units of zeros that tensor ranks do not divide"},
    {"pad_shards", PassStage::kForward, Numerics::kTolerance, Effects::kKept, on_mesh, pad_shards,
     "adds rows of zeros to parameters that the ranks of ZeRO do not divide"},
    {"flash_attention", PassStage::kForward, Numerics::kTolerance, Effects::kKept, always, flash_attention,
     "keeps attention whole, for the kernel that never stores the (T, T) matrix"},
    {"decompose_attention", PassStage::kForward, Numerics::kTolerance, Effects::kKept, always, decompose_attention,
     "writes attention that is not kept whole as matmuls and softmax"},

    {"join_pads", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, always, join_pads,
     "gradients of the slices of one value (q, k and v) are put side by side, not padded with zeros and added"},
    {"eliminate_dead_code", PassStage::kRewrite, Numerics::kExact, Effects::kKept, always, eliminate_dead_code,
     "removes nodes that no result and no update depends on"},
    {"eliminate_common_subexpressions", PassStage::kRewrite, Numerics::kExact, Effects::kKept, always,
     eliminate_common_subexpressions, "nodes that compute the same from the same values become one"},
    {"shard", PassStage::kRewrite, Numerics::kTolerance, Effects::kChanged, on_mesh, shard,
     "makes of the step the share of one rank of the mesh, and appends the collectives"},
    {"chunked_classifier", PassStage::kRewrite, Numerics::kTolerance, Effects::kChanged, chunks_classifier,
     chunked_classifier, "logits, loss and their gradients a chunk of rows at a time: all logits are never stored"},
    {"scatter_in_place", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, always, scatter_in_place,
     "adds a tied embedding's gradient onto the classifier's"},
    {"fused_optimizer", PassStage::kRewrite, Numerics::kExact, Effects::kChanged, always, fused_optimizer,
     "updates all parameters in one kernel"},
    {"autocast", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, low_precision, autocast,
     "bf16 or f16 in matmuls, attention and the residual stream, f32 in reductions, losses and the optimizer"},
    {"tf32", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, tf32_precision, autocast,
     "lets f32 matmuls and attention run in TF32, where the target has units for it"},
    {"join_projections", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, trains_low, join_projections,
     "q, k and v of rotary positions are one product, of weights put side by side"},
    {"join_gates", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, trains_in_16_bits, join_gates,
     "gate and up of a gated MLP are one product, of weights put side by side, where the target has a kernel for it"},
    {"gather_low", PassStage::kRewrite, Numerics::kExact, Effects::kKept, low_on_mesh, gather_low,
     "gathers parameters that are only read in bf16 or f16 in that type"},
    {"float8_products", PassStage::kRewrite, Numerics::kTolerance, Effects::kChanged, float8_precision, float8_products,
     "e4m3 and e5m2 operands in products of what norms make and in the classifier, where that pays with its casts"},
    {"count_saturated", PassStage::kRewrite, Numerics::kExact, Effects::kChanged, float8_precision, count_saturated,
     "counts gradients that were too large for eight bits, in programs that tell so"},
    {"decompose_context", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, on_mesh, decompose_context,
     "writes a rank's attention over a cut sequence as that of pairs of chunks, where it has no kernel"},
    {"overlap", PassStage::kRewrite, Numerics::kExact, Effects::kChanged, overlaps, overlap,
     "an order of the backward pass in which kernels run while ranks send: a list scheduler"},
    {"any_order", PassStage::kRewrite, Numerics::kTolerance, Effects::kKept, in_any_order, any_order,
     "lets attention's gradient add in any order: faster, but two runs differ in their last bits"},
    {"choose_recompute", PassStage::kRecompute, Numerics::kExact, Effects::kKept, recomputes, choose_recompute,
     "marks activations to compute again instead of keeping, as named, or until the step fits its memory budget"},
    {"apply_recompute", PassStage::kRecompute, Numerics::kExact, Effects::kChanged, always, apply_recompute,
     "computes what is marked #recompute again where the backward pass reads it"},
    {"bucket", PassStage::kRecompute, Numerics::kExact, Effects::kChanged, has_buckets, bucket,
     "collectives of many gradients or parameters become one, and parameters are gathered ahead"},
    {"low_parameters", PassStage::kRecompute, Numerics::kExact, Effects::kKept, low_generation, low_parameters,
     "generation keeps parameters that are only read in bf16 or f16 in that type"},
    {"async_scatters", PassStage::kProgram, Numerics::kTolerance, Effects::kChanged, is_async, async_scatters,
     "products whose sums tensor ranks divide are sent block by block, a rank's own last"},
    {"merge_casts", PassStage::kProgram, Numerics::kExact, Effects::kKept, fuses_low, merge_casts,
     "makes the bf16 or f16 copies of all weights in one kernel"},
    {"merge_float8", PassStage::kProgram, Numerics::kExact, Effects::kKept, fuses_float8, merge_float8,
     "makes the scales and the copies in eight bits of all weights in one kernel"},
    {"merge_adds", PassStage::kProgram, Numerics::kExact, Effects::kKept, fuses, merge_adds,
     "adds up states, and vectors onto states, in one kernel"},
    {"attention_sums", PassStage::kProgram, Numerics::kTolerance, Effects::kKept, fuses, attention_sums,
     "attention's gradient also gives the gradient of the bias of q, k and v, where the target has a kernel for it"},
    {"attention_float8", PassStage::kProgram, Numerics::kExact, Effects::kKept, fuses_float8, attention_float8,
     "attention and its gradient are written in eight bits for the products that read them so"},
    {"split_reductions", PassStage::kProgram, Numerics::kTolerance, Effects::kKept, always, split_reductions,
     "reductions of many elements to few in two steps, of which the first keeps all of the device busy"},
    {"form_groups", PassStage::kProgram, Numerics::kExact, Effects::kKept, always, form_groups,
     "gives every pointwise op, reduction and composite its kernel template"},
    {"fuse", PassStage::kProgram, Numerics::kExact, Effects::kKept, always, fuse,
     "merges groups, so that values between them never reach memory; matmuls take bias and functions"},
    {"fuse_prologues", PassStage::kProgram, Numerics::kTolerance, Effects::kKept, fuses_prologues, fuse_prologues,
     "norms in the matmuls of few rows behind them, where the target has a kernel for it: generation"},
    {"view_slices", PassStage::kProgram, Numerics::kExact, Effects::kKept, always, view_slices,
     "slices that lie in one piece are shown where they are, not copied"},
    {"eliminate_dead_code", PassStage::kProgram, Numerics::kExact, Effects::kKept, always, eliminate_dead_code,
     "removes what the passes above left without a reader"},
    {"async_products", PassStage::kProgram, Numerics::kTolerance, Effects::kKept, is_async, async_products,
     "products of rows that tensor ranks gather begin with a rank's own rows"},
};

}  // namespace

std::span<const Pass> pipeline() { return kPasses; }

}  // namespace tokamak
