// Checks of a whole configuration before anything is built from it.
#pragma once

namespace tokamak {

struct RunConfig;

/// Throws a UserError when a value is outside its range or values do not fit together (heads and width, micro-batch and
/// total batch).
void validate(const RunConfig& config);

}  // namespace tokamak
