// Checks of a whole configuration before anything is built from it.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak {

struct ModelConfig;
struct RunConfig;

/// Whether so many tensor ranks divide the heads (of keys, where those are fewer) and the hidden units of a model as it
/// is; and whether they divide its heads, or these and at most a third more, which are zeros (passes/pad_heads.h).
bool divides_model(const ModelConfig& model, int64_t ranks);
bool divides_padded_model(const ModelConfig& model, int64_t ranks);

/// Throws a UserError when a value is outside its range or values do not fit together (heads and width, micro-batch and
/// total batch).
void validate(const RunConfig& config);

/// The same of what was asked for, before anything is read: where model.from names a model, what depends on its sizes
/// is left to validate() of the run that has them.
void validate_asked(const RunConfig& config);

/// Whether each phase of train.ramp has a share of so many slots that data ranks (and interleaved stages) divide.
bool slots_fit_ramp(const RunConfig& config, int64_t slots, int64_t data_ranks);

/// UserError when mesh.slots is a number that does not fit the step's sequences or so many data ranks, with those that
/// would.
void validate_slots(const RunConfig& config, int64_t data_ranks);

}  // namespace tokamak
