// The slow, obvious twin of scaling/least_squares.h: a search that knows no derivatives.
#pragma once

#include "scaling/least_squares.h"

namespace tokamak {

/// The same minimum by Nelder's and Mead's simplex (1965), begun again from where it ends until that helps no more.
LeastSquaresResult minimize_by_simplex(const LeastSquares& problem, const Unknowns& start);

}  // namespace tokamak
