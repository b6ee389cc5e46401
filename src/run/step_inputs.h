// What a step's programs take in, and the scalars that they give. Tests: tests/run/document_mask_test.cpp, and all that
// train.
#pragma once

#include "data/loader.h"
#include "exec/program.h"

#include <cstddef>
#include <map>
#include <span>
#include <string_view>

namespace tokamak {

/// The 32 bits that dropout has of train.seed: those of small seeds themselves, and others for every upper half.
int32_t random_seed(int64_t seed);

/// What programs may ask for, by the name of their input.
using InputValues = std::map<std::string_view, std::span<const std::byte>>;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Of `parts` equal parts of the batch's sequences, the one of this index. `loss_weight`: what the sum of its losses is
/// multiplied by.
void add_batch(InputValues& values, const Batch& batch, const float& loss_weight, int64_t part = 0, int64_t parts = 1);

/// All inputs of the program but those that it knows itself.
void set_inputs(Program& program, const InputValues& values);

/// With which the mean over the batches is the mean over all their targets that count; 0 when none does.
/// `parts` of each batch have a mean of their own.
float loss_weight(std::span<const Batch> batches, int64_t parts = 1);

double scalar_of(Readback& readback);

}  // namespace tokamak
