// What configuration and files alone tell of a run that would fail. Tests: tests/errors/cli_early_test.cpp.
#pragma once

#include "config/config.h"

namespace tokamak {

/// The run with its length in steps (run/train_length.h), which an epoch needs the data for. Throws the UserErrors that
/// train() would throw later, when a device has been opened and measured: for names, the folder of the run, its data
/// and tokenizer, and the run that it would go on with. Changes nothing on the disk.
RunConfig checked_run(const RunConfig& asked);

}  // namespace tokamak
