// What ranks that save together tell each other, so that an error of one ends the save on all and none waits for it. A
// part of shared_save.h.
#pragma once

#include "base/communication_error.h"
#include "checkpoint/staged_checkpoint.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace tokamak {

inline constexpr char kToldError = '!';  // how an error begins

/// What `work` returns, or its error.
template <typename Work>
std::string told_by(const Work& work) {
  try {
    return work();
  } catch (const CommunicationError&) {
    throw;  // they wait no longer
  } catch (const std::exception& error) {
    return kToldError + std::string(error.what());
  }
}

/// UserError of the first error that a rank tells.
inline void require_no_error(int64_t step, const std::vector<std::string>& told) {
  for (size_t rank = 0; rank < told.size(); ++rank)
    if (told[rank].starts_with(kToldError))
      refuse_save(step, (rank > 0 ? fmt::format("Rank {}: ", rank) : "") + told[rank].substr(1));
}

}  // namespace tokamak
