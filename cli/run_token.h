// What keeps the ranks of two runs apart where no launcher names their run.
#pragma once

#include "config/config.h"

#include <string>

namespace tokamak {

/// The same for ranks of one configuration, output folder and number of ranks, and no others. No secret.
std::string run_token(const RunConfig& config, int world);

}  // namespace tokamak
