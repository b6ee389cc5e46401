// Writes the text of a row group.
#pragma once

#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/codegen/row_phases.h"
#include "backend/cuda/codegen/row_plan.h"
#include "backend/cuda/codegen/row_shortcuts.h"

#include <optional>
#include <string>
#include <vector>

namespace tokamak::cuda {

class RowWriter {
 public:
  /// Of a kernel.
  RowWriter(const GroupBody& body, int64_t shared_bytes);
  GroupCode run();

  /// Of a function; see generate_row_function.
  struct Function {
    int made, threads;
  };
  RowWriter(const GroupBody& body, Function function);
  std::string run_function();

 private:
  RowWriter(const GroupBody& body, std::optional<Function> function, int64_t shared_bytes);

  // row.cpp
  void write_arguments();
  std::string describe() const;
  void write_constants();
  void write_start();
  void write_shared();
  void write_single(int v);
  void write_row();
  void write_row_results(int p);
  void write_phase(int p);
  void write_phase_loops(int p, VectorCode& code, const std::vector<int>& stores);
  int one_hot(const std::vector<int>& values) const;
  void write_choice(int p, int hot);

  // row_loads.cpp
  void write_load_function();
  void write_load(const char* into, int v);
  void write_exchange();
  void write_loads();
  void write_source(int v);

  // row_reductions.cpp
  std::vector<int> combined(int p) const;
  void finish_reductions(int p);
  void write_combine(int p);
  std::string combined_with(int v, const std::string& total) const;

  const GroupValue& value(int v) const { return body_.values[size_t(v)]; }
  bool is_operand(int v) const { return is_row_operand(body_, value(v)); }
  bool is_pick(int v) const { return shortcuts_.picks.count(v) > 0; }
  bool is_loaded_ahead(int v) const {
    return plan_.ahead && value(v).is_input() && (is_operand(v) || expression_.level(v) == Level::kRow);
  }
  // Read once, not in every row.
  bool is_kept_column(int v) const {
    return plan_.columns && value(v).is_input() && expression_.level(v) == Level::kTile && !is_operand(v);
  }
  // Rows after each other use scratch memory in turns.
  bool takes_turns() const { return sums_ || function_; }
  bool needs_scratch() const { return plan_.team > 32 && combined_ > 0; }
  int count() const { return int(body_.values.size()); }
  bool unrolled() const { return plan_.keep == RowPlan::Keep::kRegisters; }

  bool in_registers(int v) const { return is_kept_column(v) || (is_operand(v) && unrolled()); }

  template <typename Body>
  void write_vector_loop(const Body& body) {
    if (unrolled()) text_.unroll();
    text_.open("for (int k = 0; k < kVectors; ++k)");
    text_.line("const Index column = (Index(k) * kTeam + lane) * kVector;");
    text_.line("if (k >= kWholeVectors && column >= kCols) continue;");
    body();
    text_.close();
  }

  const GroupBody& body_;
  std::optional<Function> function_;
  bool sums_;
  Expression expression_;
  RowPlan plan_;
  RowShortcuts shortcuts_;
  RowPhases phases_;
  std::vector<size_t> scratch_of_;  // of each phase, in reductions
  size_t combined_ = 0;             // reductions that need scratch
  std::vector<int> row_sums_;
  Text text_;
};

}  // namespace tokamak::cuda
