// The ladder of a device that is not there: the same rungs, compiled for it and predicted.
// Tests: tests/ladder/predicted_ladder_test.cpp.
#pragma once

#include "ladder/ladder.h"

namespace tokamak {

/// The rungs of `config` on a described device with so many bytes. A rung that is predicted to be slower than the last
/// kept one, by more than a hundredth, is not kept. Of a RungResult what is measured stays 0; ms and predicted_ms are
/// both the prediction.
std::vector<RungResult> predict_ladder(const RunConfig& config, const Platform& platform, int64_t available_bytes,
                                       std::span<const Rung> rungs,
                                       const std::function<void(const RungResult&)>& report);

std::string format_predicted_header();
std::string format_predicted_rung(const RungResult& rung);

}  // namespace tokamak
