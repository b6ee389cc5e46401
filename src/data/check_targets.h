// Data on which nothing can be learned or measured: with documents kept apart, a window of nothing but ends of
// documents has no target that counts. Tests: tests/data/check_targets_test.cpp.
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

class Corpus;
class Dataset;
struct Batch;

/// UserError if no target counts in a dataset's first windows; reads up to the first that does. end_of_text -1: all do.
void require_targets(const Dataset& dataset, int64_t context, int64_t windows, int32_t end_of_text);

/// The same for all entries together, if they are so small that all can be looked at here.
void require_some_targets(const Corpus& corpus, int32_t end_of_text);

/// UserError if no target counts in the batches of a step: it would have no loss. `step` counts from 1.
void require_targets(std::span<const Batch> batches, int64_t step);

}  // namespace tokamak
