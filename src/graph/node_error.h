// Errors that name the node they are about.
#pragma once

#include "base/error.h"
#include "graph/graph.h"

namespace tokamak {

/// "%5 = mul(%3, %4)", with the numbers that values have in their graph; "mul(%3, %4)" of a node that is not in one
/// yet.
std::string describe(const Node& node);

/// Calls work(). What it throws comes out with the node, as in "... (in %5 = mul(%3, %4))": a UserError as one, and
/// everything else as an InternalError.
template <typename Work>
auto naming(const Node& node, const Work& work) {
  try {
    return work();
  } catch (const UserError& error) {
    user_error("{} (in {})", error.what(), describe(node));
  } catch (const std::exception& error) {
    throw InternalError(fmt::format("{} (in {})", error.what(), describe(node)));
  }
}

}  // namespace tokamak
