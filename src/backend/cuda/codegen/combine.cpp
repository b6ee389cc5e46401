#include "backend/cuda/codegen/combine.h"

#include "backend/cuda/codegen/expression.h"
#include "base/divide.h"
#include "ops/reduce.h"

#include <algorithm>

namespace tokamak::cuda {

const char* combine_name(const GroupValue& reduction) { return reduction.is(op::reduce_max) ? "Max" : "Sum"; }

std::vector<int> results_of(const GroupBody& body, int value) {
  std::vector<int> found;
  for (size_t r = 0; r < body.results.size(); ++r)
    if (body.results[r].value == value) found.push_back(int(r));
  return found;
}

int64_t partial_bytes(const GroupBody& body, int64_t blocks) {
  auto sums = std::count_if(body.values.begin(), body.values.end(), [](const auto& v) { return v.reduces_rows(); });
  return blocks * int64_t(sums) * body.cols * int64_t(sizeof(float));
}

void add_combine(GroupCode& code, const GroupBody& body, const std::vector<int>& sums, int64_t blocks) {
  Text text;
  text.blank();
  text.open("extern \"C\" __global__ void __launch_bounds__(1024) combine({})", parameters(body));
  text.line("begin_kernel();");
  text.line("const Index column = Index(blockIdx.x) * 32 + threadIdx.x;");
  text.line("const bool valid = column < kCols;");
  for (size_t s = 0; s < sums.size(); ++s) {
    text.open("if (blockIdx.y == {})", s);
    text.line(
        "const float v{} = combine_partials<{}, kBlocks>(partial + {} * int64_t(kCols) + column, "
        "kSums * int64_t(kCols), valid);",
        sums[s], combine_name(body.values[size_t(sums[s])]), s);
    for (int r : results_of(body, sums[s]))
      text.line("if (threadIdx.y == 0 && valid) from_float(v{}, r{}[column]);", sums[s], r);
    text.close();
  }
  text.close();
  code.source += text.str();
  code.launches.push_back({.function = "combine",
                           .blocks_x = ceil_div(body.cols, 32),
                           .blocks_y = int64_t(sums.size()),
                           .threads_x = 32,
                           .threads_y = 32});
  code.workspace_bytes = partial_bytes(body, blocks);
}

void write_partial(Text& text, const std::vector<int>& sums, int teams) {
  if (teams > 1) text.line("__shared__ float totals[kTeams][kCols];");
  for (size_t s = 0; s < sums.size(); ++s) {
    std::string partial = fmt::format("partial[(int64_t(blockIdx.x) * kSums + {}) * kCols + column", s);
    if (teams > 1 && s > 0) text.line("__syncthreads();");
    text.unroll();
    text.open("for (int k = 0; k < kVectors; ++k)");
    text.line("const Index column = (Index(k) * kTeam + lane) * kVector;");
    text.line("if (column >= kCols) continue;");
    text.line("for (int i = 0; i < kVector; ++i) {} = total{}[k][i];",
              teams > 1 ? "totals[team][column + i]" : partial + " + i]", sums[s]);
    text.close();
    if (teams == 1) continue;
    text.line("__syncthreads();");
    text.open("for (Index column = threadIdx.x; column < kCols; column += kTeam * kTeams)");
    text.line("float sum = totals[0][column];");
    text.line("for (int t = 1; t < kTeams; ++t) sum += totals[t][column];");
    text.line("{}] = sum;", partial);
    text.close();
  }
}

}  // namespace tokamak::cuda
