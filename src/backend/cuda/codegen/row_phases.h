// Reductions cut a row's work into phases: phase p may use the reductions that are complete before it, and completes
// those of phase p + 1.
#pragma once

#include "backend/cuda/codegen/expression.h"

#include <functional>
#include <map>

namespace tokamak::cuda {

class RowPhases {
 public:
  /// `keep`: values that are dear to compute are kept for later phases. `skipped` says which reductions need no work on
  /// elements.
  RowPhases(const GroupBody& body, const Expression& expression, bool keep, std::function<bool(int)> skipped);

  int count() const { return count_; }
  int phase(int value) const { return phase_[size_t(value)]; }
  /// Reductions over the row that phase p works on, and sums over the rows whose terms it computes.
  std::vector<int> reductions(int p) const;
  std::vector<int> row_sums(int p) const;
  /// Indices of full results that phase p stores.
  std::vector<int> stores(int p) const;
  /// What phase p defines for every element, in order; and which of those it reads from where an earlier one kept them.
  std::vector<int> values(int p) const;
  bool is_kept(int value) const { return kept_.count(value) > 0; }
  bool reads_kept(int value, int p) const { return is_kept(value) && kept_.at(value) < p; }
  const std::map<int, int>& kept() const { return kept_; }  // value -> the phase that computes it

 private:
  std::vector<int> targets(int p) const;

  const GroupBody& body_;
  const Expression& expression_;
  std::function<bool(int)> skipped_;
  std::vector<int> phase_;
  std::map<int, int> kept_;
  int count_ = 1;
};

}  // namespace tokamak::cuda
