// A rule makes new parameters out of old ones and their gradients: one record, chosen by optimizer.name. It may leave
// some of the parameters to another rule, so that they form groups.
// docs/add_an_optimizer.md shows how to add one. Tests: tests/autodiff/optimizer_rule_test.cpp,
// tests/autodiff/parameter_groups_test.cpp, tests/mesh/parameter_groups_test.cpp.
#pragma once

#include "autodiff/rate_groups.h"
#include "config/own_options.h"
#include "graph/graph.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class GraphBuilder;
struct OptimizerConfig;

/// One parameter's part of an update. The parameter is f32; lr, scale and step f32[].
struct ParameterUpdate {
  ValueId parameter = kNoValue;
  ValueId grad = kNoValue;  // of the same shape and any float type; to be multiplied by `scale`
  ValueIds states;          // as the rule lists them
  double weight_decay = 0;  // 0 for what does not decay
  ValueId lr = kNoValue;
  ValueId scale = kNoValue;  // 0: the update is not applied, as `grad` may be infinite or NaN
  ValueId step = kNoValue;   // the number of this update, from 1
};

/// A tensor that a rule keeps of each of its parameters, zero at first.
struct OptimizerState {
  std::string_view prefix;  // "adam.m": the state is adam.m.<parameter>, which is also its name in checkpoints
  /// Its type, given that of a parameter and how it lies; null: the same shape, in optimizer.state_type. Asked with the
  /// stored shape and with that of the model, where rows were added to the parameter: as many or more rows then.
  ValueType (*type)(const ValueType& parameter, const ArgumentSpec& spec) = nullptr;
};

/// How the ranks of a mesh divide the work on what a rule updates from all of it: matrices are counted, and each is
/// one rank's. Without axes every rank does all.
struct WorkShares {
  std::string axes;         // those of the mesh over which it is divided, with blanks between them
  int64_t ranks = 1;        // of these together
  int64_t least_parts = 0;  // slots: a rank works on no more at a time than there are in one of so many parts, so that
                            // the bits do not depend on the number of ranks. 0: on all that it has
};

struct OptimizerRule {
  std::string_view name;  // what optimizer.name says
  std::span<const OptimizerState> states;
  /// Appends the update -> the new parameter and the new states. A step that is skipped leaves all as they were, bit
  /// for bit: see unless_skipped.
  ValueIds (*update)(GraphBuilder&, const ParameterUpdate&, const OptimizerConfig&) = nullptr;
  /// The same for all parameters of the rule at once, instead of `update`: where they share work.
  std::vector<ValueIds> (*update_all)(GraphBuilder&, std::span<const ParameterUpdate>, const WorkShares&,
                                      const OptimizerConfig&) = nullptr;
  /// The rule to which it leaves this parameter; null: to none. That rule updates it, whatever it leaves itself.
  const OptimizerRule* (*other_rule)(const Argument& parameter) = nullptr;
  /// Whether a parameter is updated from all of it: ZeRO then cuts neither it nor its states and gradient.
  bool whole = false;
  /// Whether what it leaves to another rule has the same learning rate, without optimizer.adamw_lr_ratio.
  bool same_rate = false;
  /// The keys of optimizer.* that it, or a rule that it leaves parameters to, reads and some other rule does not.
  OwnOptions options = {};
};

/// What a parameter has of the learning rate, as a share of it, and its own weight decay.
struct ParameterRates {
  double lr = 1;
  double weight_decay = 0;
};

/// The rule of a run with the options that it and the rules of other groups read; `config` must outlive it.
class Optimizer {
 public:
  /// The rule that optimizer.name names, as rule_of; so options alone stand for an optimizer.
  Optimizer(const OptimizerConfig& config);
  Optimizer(const OptimizerRule& rule, const OptimizerConfig& config);

  /// The one that updates the parameter.
  const OptimizerRule& rule_of(const Argument& parameter) const;
  /// Vectors do not decay; what another rule than that of optimizer.name updates has optimizer.adamw_lr_ratio, unless
  /// that is `same_rate`. Then what optimizer.groups says of its name, the last group of those that match.
  ParameterRates rates_of(const Argument& parameter) const;
  const OptimizerConfig& config() const { return *config_; }
  const WorkShares& shares() const { return shares_; }
  void set_shares(WorkShares shares) { shares_ = std::move(shares); }
  /// Whether the parameter's rule is `whole`, for PassContext::updates_whole. It may outlive the optimizer.
  std::function<bool(const Argument& parameter)> updates_whole() const;
  /// Whether all that is kept of a matrix has its rows, for PassContext::rows_in_parts.
  bool keeps_rows() const;
  /// Whether all that is kept of a matrix has its shape: then its columns may be padded (passes/pad_heads.h).
  bool keeps_shapes() const;

 private:
  std::vector<Shape> kept_of(const Shape& matrix) const;

  const OptimizerRule* rule_;
  const OptimizerConfig* config_;
  std::vector<RateGroup> groups_;
  WorkShares shares_;
};

std::span<const OptimizerRule* const> optimizer_rules();

/// The keys of optimizer.* that other rules read and that of optimizer.name does not: "optimizer.momentum".
std::vector<std::string> unread_options(const OptimizerConfig& config);

/// The rule that optimizer.name names; UserError with the known ones when there is none.
const OptimizerRule& rule_of(const OptimizerConfig& config);

/// `after`, or in a step that is skipped `before`, in the type of `before`: what becomes bf16 is rounded by chance, so
/// that a mean over steps is right where one step changes it by less than its last bit.
ValueId unless_skipped(GraphBuilder& g, const ParameterUpdate& update, ValueId before, ValueId after);

/// share old + (1 - share) grad: how a rule keeps a mean over steps.
ValueId mix(GraphBuilder& g, ValueId grad, ValueId old, double share);

/// The parameter after decoupled weight decay, (1 - lr decay) parameter. With optimizer.cautious_decay only what
/// `step`, which will be subtracted, makes smaller as well.
ValueId decayed(GraphBuilder& g, const ParameterUpdate& update, ValueId step, const OptimizerConfig& config);

extern const OptimizerRule adafactor_rule;  // autodiff/adafactor.cpp
extern const OptimizerRule adamw_rule;      // autodiff/adamw.cpp
extern const OptimizerRule adamw8bit_rule;  // autodiff/adamw8bit.cpp
extern const OptimizerRule lion_rule;       // autodiff/lion.cpp
extern const OptimizerRule muon_rule;       // autodiff/muon.cpp
extern const OptimizerRule normuon_rule;    // autodiff/muon.cpp
extern const OptimizerRule sgd_rule;        // autodiff/sgd.cpp

}  // namespace tokamak
