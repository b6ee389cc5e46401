#include "advise/advice.h"
#include "compile/step_compiler.h"
#include "ops/classifier.h"
#include "ops/matmul_form.h"
#include "ops/parameter_kind.h"
#include "ops/work_class.h"
#include "passes/step_mesh.h"
#include "plan/product_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

bool is_table(const Argument& parameter) {
  return parameter.spec.role == Role::kEmbedding || parameter.spec.role == Role::kClassifier;
}

std::string words_of(ProductPart part) {
  switch (part) {
    case ProductPart::kForward: return "";
    case ProductPart::kInputGradient: return ", gradient of its input";
    case ProductPart::kWeightGradient: return ", gradient of its weights";
  }
  return "";
}

class Reader {
 public:
  explicit Reader(const Plan& plan) : plan_(plan), graph_(plan.graph), products_(plan.graph) {}

  RankWork run() {
    for (const Launch& launch : plan_.launches) add(launch);
    return std::move(work_);
  }

 private:
  void add(const Launch& launch) {
    const Node& node = graph_.nodes()[size_t(launch.node)];
    WorkClass kind = work_class(node);
    if (kind == WorkClass::kCommunication) return;
    work_.seconds += launch.seconds;
    if (kind == WorkClass::kAttention) work_.attention += launch.seconds;
    if (kind == WorkClass::kOptimizer) work_.update += launch.seconds;
    if (node.op == &op::classifier) return add_classifier(node, launch.seconds);
    if (kind == WorkClass::kMatmul) add_matmul(node, launch.seconds);
  }

  void add_matmul(const Node& node, double seconds) {
    std::optional<NamedProduct> product = products_.find(node);
    if (!product || !product->argument) return;  // products that attention is made of have no parameters
    MatmulForm form = read_matmul(graph_, node);
    keep({.name = without_block(product->parameter) + words_of(product->part),
          .m = form.m,
          .n = form.n,
          .k = form.k,
          .is_table = is_table(*product->argument),
          .seconds = seconds});
  }

  // Logits, and the gradients of both their operands, in chunks of rows that count as one.
  void add_classifier(const Node& node, double seconds) {
    const Shape &rows = graph_.shape(node.inputs[0]), &matrix = graph_.shape(node.inputs[1]);
    int64_t width = rows.back(), tokens = num_elements(rows) / width, words = num_elements(matrix) / width;
    keep({"classifier", tokens, words, width, true, 1, seconds / 3});
    keep({"classifier, gradient of its input", tokens, width, words, true, 1, seconds / 3});
    keep({"classifier, gradient of its weights", words, width, tokens, true, 1, seconds / 3});
  }

  // Equal ones are one.
  void keep(MatmulShape shape) {
    for (MatmulShape& known : work_.matmuls) {
      if (known.name != shape.name || known.m != shape.m || known.n != shape.n || known.k != shape.k) continue;
      known.count += shape.count;
      known.seconds += shape.seconds;
      return;
    }
    work_.matmuls.push_back(std::move(shape));
  }

  const Plan& plan_;
  const Graph& graph_;
  ProductFinder products_;
  RankWork work_;
};

// As many as there are between or beyond two numbers of blocks.
RankWork mix(const RankWork& less, const RankWork& more, double share) {
  auto between = [&](double a, double b) { return a + share * (b - a); };
  RankWork mixed{{},
                 between(less.attention, more.attention),
                 between(less.update, more.update),
                 between(less.seconds, more.seconds)};
  for (const MatmulShape& of_more : more.matmuls) {
    auto same = std::ranges::find_if(less.matmuls, [&](const MatmulShape& one) {
      return one.name == of_more.name && one.m == of_more.m && one.n == of_more.n && one.k == of_more.k;
    });
    MatmulShape of_less = same == less.matmuls.end() ? MatmulShape{.count = 0} : *same;
    MatmulShape shape = of_more;
    shape.count = between(of_less.count, of_more.count);
    shape.seconds = between(of_less.seconds, of_more.seconds);
    mixed.matmuls.push_back(std::move(shape));
  }
  return mixed;
}

}  // namespace

RankWork rank_work(const RunConfig& run, const ParallelLayout& layout, const Platform& platform) {
  constexpr int64_t kFew = 2, kMore = 4;
  ParallelLayout alone = layout;
  alone.mesh.data = alone.mesh.pipe = 1;
  alone.mesh.schedule = MeshConfig().schedule;
  alone.mesh.interleave = 1;
  alone.mesh.chunk_layers.clear();
  alone.mesh.zero = 0;
  alone.mesh.slots = 1;
  alone.micro_batches = 1;
  alone.budget_gib = 0;
  RunConfig few = run_of(run, alone);
  auto of = [&](int64_t blocks) {
    few.model.layers = blocks;
    return Reader(StepOfKinds(resolve(few, platform.target), platform).compile(-1, 0).programs[0].plan).run();
  };
  double blocks = double(run.model.layers) / double(layout.mesh.pipe);
  RankWork work = mix(of(kFew), of(kMore), (blocks - double(kFew)) / double(kMore - kFew));
  double update = work.update / double(layout.micro_batches);
  if (layout.mesh.zero >= 1) update /= double(layout.mesh.data * layout.mesh.context);
  work.seconds += update - work.update;
  work.update = update;
  return work;
}

}  // namespace tokamak
