// Where a group's body needs less than the full precision of f32.
#pragma once

#include "ops/group_body.h"

namespace tokamak::cuda {

/// For every value, whether it is an exponential for which a relative error of 6e-8 |x| will do, as every use of it
/// - ends in numbers of 16 bits, whose own error is at least 200 times as large wherever e^x is not 0, or
/// - is the sum over the row of e^(x - max x). The sum's relative error is the mean of 6e-8 |x - max x|, weighted by
///   softmax(x). That mean is at most ln(columns), so the error stays below 1e-6 up to 10^7 columns.
std::vector<bool> coarse_exponentials(const GroupBody& body);

}  // namespace tokamak::cuda
