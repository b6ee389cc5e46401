// The table of published runs for people and for programs. Tests: tests/advise/published_test.cpp.
#pragma once

#include "advise/published.h"

#include <string>
#include <vector>

namespace tokamak {

/// Of those of one software: how far predictions are off.
struct PublishedErrors {
  int64_t runs = 0;  // that count
  double mean = 0;   // of the errors as they are, which is the bias,
  double size = 0;   // and of their sizes
  double worst = 0;  // the largest, with its sign
};
PublishedErrors errors_of(const std::vector<PublishedPrediction>& predictions, const Software& software);

std::string format_published(const std::vector<PublishedPrediction>& predictions);

std::string published_json(const std::vector<PublishedPrediction>& predictions);

}  // namespace tokamak
