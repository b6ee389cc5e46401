// The forms of a step that tuning chooses between, and what of their kernels can be compiled before any is measured.
// Tests: tests/tune/tune_test.cpp.
#pragma once

#include "backend/kernel_tuning.h"
#include "compile/compiled_run.h"
#include "graph/platform.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tokamak {

/// A way to compute the step: the programs of all stages.
struct StepForm {
  struct NodeAt {
    size_t program;
    int node;
  };
  using Kernels = std::map<std::string, NodeAt>;  // by kernel_key

  std::vector<CompiledGraph> programs;
  std::vector<int64_t> runs;               // of each, in a step
  std::vector<std::string> groups;         // its matmul groups
  Kernels libraries;                       // see library_kernels
  Kernels kernels;                         // with fp8: all that one rank runs alone
  std::set<std::set<std::string>> float8;  // its products of eight bits (float8_key), and those of one operand
  std::set<std::string> refused;           // groups that it does without
};

class StepForms {
 public:
  /// `platform`, whose prices are read at each compile, and `code` must outlive it.
  StepForms(const ResolvedRun& run, const Platform& platform, CodeAhead& code);
  StepForms(const StepForms&) = delete;
  StepForms& operator=(const StepForms&) = delete;

  /// Of the run as it is, and of the one that choices are made for.
  StepForm compile(const std::set<std::string>& refused) const { return compile(run_, refused); }
  StepForm compile_chosen(const std::set<std::string>& refused) const { return compile(chosen_for_, refused); }

  /// Begins to compile the kernels of a form that is about to be the best, and of all trials of it. Products and
  /// attention come first, also those that only a trial has: they take longest to compile, and the compiler reads one
  /// source at a time.
  void prepare(const StepForm& best);
  /// The same of the trials alone: of forms without some products of eight bits, and without each group that was not
  /// `tried`.
  void prepare_formats(const StepForm& best);
  void prepare_groups(const StepForm& best, const std::set<std::string>& tried);
  void compile_ahead(const StepForm& form);

  /// The form that does without `refused`, whose kernels of that kind are under compilation.
  StepForm take_trial(const StepForm& best, const std::set<std::string>& refused, StepForm::Kernels StepForm::*kernels);
  /// What was prepared is not needed any more.
  void drop_trials() { trials_.clear(); }

 private:
  StepForm compile(const ResolvedRun& run, const std::set<std::string>& refused) const;
  const StepForm& prepare_trial(const StepForm& best, const std::set<std::string>& refused,
                                StepForm::Kernels StepForm::*kernels);
  void compile_ahead(const StepForm& form, StepForm::NodeAt at);

  ResolvedRun run_;
  ResolvedRun chosen_for_;
  const Platform& platform_;
  CodeAhead& code_;
  std::map<std::set<std::string>, StepForm> trials_;  // prepared, by what they do without
  std::set<std::string> compiled_;                    // by kernel_key
};

/// What a form does without that does without both.
std::set<std::string> refuse_both(std::set<std::string> refused, const std::set<std::string>& more);

/// Matmul groups of `trial` that `best` has not.
std::vector<std::string> new_groups(const StepForm& best, const StepForm& trial);

}  // namespace tokamak
