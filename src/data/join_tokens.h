// Several token arrays, one after the other, as one.
#pragma once

#include "data/token_array.h"

namespace tokamak {

std::unique_ptr<TokenArray> join_tokens(std::vector<std::unique_ptr<TokenArray>> arrays);

}  // namespace tokamak
