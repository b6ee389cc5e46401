// Which products of a step have operands of eight bits (passes/float8_products.h), and why others have not. Tests:
// tests/compile/float8_table_test.cpp.
#pragma once

#include "passes/pass.h"

#include <map>
#include <set>
#include <string>

namespace tokamak {

struct ResolvedRun;

class Float8Table {
 public:
  /// Looks at what is compiled while it is there: at each graph of other parameters than those before, as the parts of
  /// a pipeline are. None without fp8.
  PassObserver observer(const PassContext& context);

  /// A line for products that are alike in all blocks: "    12 x attn.c_attn dgrad  bf16: ...".
  std::string text() const;

 private:
  void add(const Graph& graph, const PassContext& context);

  Graph before_;                       // as the passes before that one left it
  std::set<std::string> seen_;         // of each graph the parameters
  std::map<std::string, int> counts_;  // by line
};

/// The table of a run, of all its stages; empty without fp8.
std::string float8_table(const ResolvedRun& run, const Platform& platform);

}  // namespace tokamak
