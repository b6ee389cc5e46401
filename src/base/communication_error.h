// The kind of error that ranks which work together have beside those of base/error.h.
#pragma once

#include <stdexcept>

namespace tokamak {

/// Ranks cannot go on together: they ask for different things, one of them is gone or gave up, a link broke, a wait is
/// over. Names the ranks, and the axis and operation where there is one; the same text on all ranks that can be told.
/// Nothing by which ranks meet is of use afterwards.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tokamak
