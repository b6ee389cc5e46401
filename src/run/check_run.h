// What configuration and files alone tell of a run that would fail. Tests: tests/errors/cli_early_test.cpp.
#pragma once

#include "config/config.h"

namespace tokamak {

/// The run with its length in steps (run/train_length.h), which an epoch needs the data for. Throws the UserErrors that
/// train() would throw later, when a device has been opened and measured: for names, the folder of the run, its data
/// and tokenizer, and the run that it would go on with. Changes nothing on the disk.
/// `trains`: whether another process may train in the folder now, as where this one only starts others.
enum class AnotherTrains : uint8_t { kIsRefused, kIsAllowed };
RunConfig checked_run(const RunConfig& asked, AnotherTrains trains = AnotherTrains::kIsRefused);

}  // namespace tokamak
