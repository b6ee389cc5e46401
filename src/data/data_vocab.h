// model.vocab = 0 stands for the vocabulary of the data.
#pragma once

#include "config/config.h"

namespace tokamak {

/// The configuration with model.vocab filled in from data.path's index where it is 0.
RunConfig with_data_vocab(RunConfig config);

}  // namespace tokamak
