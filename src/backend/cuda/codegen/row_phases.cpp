#include "backend/cuda/codegen/row_phases.h"

#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr size_t kMaxKept = 2;

bool is_dear(const GroupValue& v) {
  for (const OpDef* op : {&op::exp, &op::log, &op::tanh, &op::pow, &op::gelu, &op::gelu_grad, &op::random_uniform})
    if (v.is(*op)) return true;
  return false;
}

// The values that `targets` need, in order; a value of which stop() says so is taken as it is.
template <typename Stop>
std::vector<int> needed_for(const GroupBody& body, const std::vector<int>& targets, const Stop& stop) {
  std::vector<bool> needed(body.values.size());
  for (int target : targets) needed[size_t(target)] = true;
  for (size_t v = body.values.size(); v-- > 0;)
    if (needed[v] && !stop(int(v)))
      for (int operand : body.values[v].operands) needed[size_t(operand)] = true;
  std::vector<int> values;
  for (size_t v = 0; v < needed.size(); ++v)
    if (needed[v]) values.push_back(int(v));
  return values;
}

}  // namespace

RowPhases::RowPhases(const GroupBody& body, const Expression& expression, bool keep, std::function<bool(int)> skipped)
    : body_(body), expression_(expression), skipped_(std::move(skipped)) {
  for (const GroupValue& v : body.values) {
    int phase = 0;
    for (int operand : v.operands) phase = std::max(phase, phase_[size_t(operand)]);
    if (v.reduces_cols()) ++phase;
    phase_.push_back(phase);
    count_ = std::max(count_, phase + 1);
  }
  if (!keep) return;
  std::map<int, int> first;
  for (int p = 0; p < count_; ++p)
    for (int v : values(p)) {
      auto [at, fresh] = first.try_emplace(v, p);
      if (!fresh && is_dear(body.values[size_t(v)]) && kept_.size() < kMaxKept) kept_.try_emplace(v, at->second);
    }
}

std::vector<int> RowPhases::reductions(int p) const {
  std::vector<int> found;
  for (size_t v = 0; v < phase_.size(); ++v)
    if (body_.values[v].reduces_cols() && phase_[v] == p + 1) found.push_back(int(v));
  return found;
}

std::vector<int> RowPhases::row_sums(int p) const {
  std::vector<int> found;
  for (size_t v = 0; v < phase_.size(); ++v)
    if (body_.values[v].reduces_rows() && phase_[v] == p) found.push_back(int(v));
  return found;
}

std::vector<int> RowPhases::stores(int p) const {
  std::vector<int> found;
  for (size_t r = 0; r < body_.results.size(); ++r) {
    const GroupValue& v = body_.values[size_t(body_.results[r].value)];
    if (!v.reduces_rows() && v.along_cols && phase_[size_t(body_.results[r].value)] == p) found.push_back(int(r));
  }
  return found;
}

std::vector<int> RowPhases::targets(int p) const {
  std::vector<int> targets;
  for (int v : reductions(p))
    if (!skipped_(v)) targets.push_back(body_.values[size_t(v)].operands[0]);
  for (int v : row_sums(p)) targets.push_back(body_.values[size_t(v)].operands[0]);
  for (int r : stores(p)) targets.push_back(body_.results[size_t(r)].value);
  return targets;
}

std::vector<int> RowPhases::values(int p) const {
  auto stop = [&](int v) { return reads_kept(v, p) || expression_.level(v) != Level::kTile; };
  std::vector<int> needed = needed_for(body_, targets(p), stop);
  std::erase_if(needed, [&](int v) { return expression_.level(v) != Level::kTile; });
  return needed;
}

}  // namespace tokamak::cuda
