// Documents packed into samples against each of them alone at the same positions: logits, loss and all gradients, on
// the interpreter and on the CPU under every setting of the passes.
#include "config/compile_config.h"
#include "config/model_config.h"
#include "data/document_starts.h"
#include "graph/builder.h"
#include "ops/attention.h"
#include "ops/interpret.h"
#include "tests/model/golden.h"
#include "tests/model/gradient_graph.h"
#include "tests/support/run_on_cpu.h"

namespace tokamak::test {
namespace {

using Ids = std::vector<int32_t>;
constexpr int64_t kSamples = 2;

class DocumentMask : public ::testing::TestWithParam<const char*> {
 protected:
  // One place in a sample; alone it is a model of its own length, with the embeddings of the positions where it stood.
  struct Document {
    int64_t sample, begin, length;
  };
  const std::vector<Document> documents_{{0, 0, 6}, {0, 6, 10}, {1, 0, 1}, {1, 1, 9}, {1, 10, 6}};

  DocumentMask() {
    for (const Document& d : documents_) {
      for (int64_t t = 0; t < d.length; ++t)
        tokens_.push_back(int32_t((7 * d.begin + 13 * t + 5 * d.sample) % (end_ - 3)));
      bool goes_on = d.sample == 0 && d.begin == 6;  // beyond its sample
      if (!goes_on) tokens_.back() = end_;
    }
    for (size_t i = 0; i < tokens_.size(); ++i) targets_.push_back(i + 1 < tokens_.size() ? tokens_[i + 1] : 3);
    hide_first_tokens(tokens_, end_, targets_);
    expected_ = expected();
  }

  // Of all samples.
  std::vector<HostTensor> packed_arguments(const Graph& graph) const {
    return arguments(graph, {0, 0, golden_.model().context * kSamples}, true);
  }

  std::vector<HostTensor> arguments(const Graph& graph, const Document& d, bool packed) const {
    int64_t first = d.sample * golden_.model().context + d.begin;
    auto part = [&](const Ids& ids) { return Ids(ids.begin() + first, ids.begin() + first + d.length); };
    std::vector<HostTensor> tensors;
    for (const Argument& argument : graph.arguments()) {
      HostTensor& tensor = tensors.emplace_back(graph.type(argument.value));
      auto fill = [&](const auto& values) { std::copy(values.begin(), values.end(), tensor.data.begin()); };
      if (argument.name == "tokens") {
        fill(part(tokens_));
      } else if (argument.name == "targets") {
        fill(part(targets_));
      } else if (argument.name == "documents") {
        fill(document_starts(tokens_, golden_.model().context, end_));
      } else if (argument.name == "loss_weight") {
        tensor[0] = 1 / double(count_targets(targets_));
      } else if (argument.name == "wpe.weight" && !packed) {
        std::vector<float> all = golden_.floats("param.wpe.weight");
        std::copy_n(all.begin() + d.begin * golden_.model().width, tensor.size(), tensor.data.begin());
      } else {
        fill(golden_.floats("param." + argument.name));
      }
    }
    return tensors;
  }

  ModelConfig model_of(const Document& d) const {
    ModelConfig model = golden_.model();
    model.context = d.length;
    return model;
  }

  // Loss and gradients by name, each document's share added up; knows nothing of masks.
  std::map<std::string, std::vector<double>> expected() const {
    std::map<std::string, std::vector<double>> sums;
    for (const Document& d : documents_) {
      Graph graph = gradient_graph(model_of(d), 1, nullptr);
      std::vector<HostTensor> results = interpret(graph, arguments(graph, d, false)).results;
      double share = double(d.length) / double(count_targets(targets_));  // the mean over all rows, as a share
      for (size_t i = 0; i < results.size(); ++i) {
        const std::string& name = graph.results()[i].name;
        bool positions = name == "grad.wpe.weight";
        std::vector<double>& sum = sums[name];
        sum.resize(positions ? size_t(golden_.model().context * golden_.model().width) : results[i].data.size());
        int64_t offset = positions ? d.begin * golden_.model().width : 0;
        for (int64_t e = 0; e < results[i].size(); ++e) sum[size_t(offset + e)] += share * results[i][e];
      }
    }
    return sums;
  }

  void expect_near(const Graph& graph, const std::vector<HostTensor>& results, double tolerance) const {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::vector<double>& want = expected_.at(graph.results()[i].name);
      ASSERT_TRUE(close_to(graph.results()[i].name, results[i].data, {want.begin(), want.end()}, tolerance));
    }
  }

  // A rotary angle is rounded at its position, which alone is another one.
  double exact() const { return golden_.model().family == "gpt2" ? 1 : 1e4; }

  Golden golden_{GetParam()};
  const int32_t end_ = int32_t(golden_.model().vocab) - 1;
  Ids tokens_, targets_;
  std::map<std::string, std::vector<double>> expected_;
};

Graph logits_graph(const ModelConfig& model, int64_t B, bool documents) {
  Graph graph("logits");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {B, model.context}});
  ValueId starts = documents ? g.input("documents", {DType::kI32, {B, model.context}}) : kNoValue;
  graph.add_result("logits", logits_of(g, model, tokens, starts));
  return graph;
}

TEST_P(DocumentMask, HidesTheFirstTokenOfEveryDocumentButNotOfASampleThatGoesOn) {
  EXPECT_EQ(count_targets(targets_), int64_t(tokens_.size()) - 4);
}

TEST_P(DocumentMask, HasTheLogitsOfEachAlone) {
  Graph packed = logits_graph(golden_.model(), kSamples, true);
  HostTensor got = interpret(packed, packed_arguments(packed)).results[0];
  HostTensor fast = run_on_cpu(packed, packed_arguments(packed)).results[0];
  for (const Document& d : documents_) {
    Graph alone = logits_graph(model_of(d), 1, false);
    HostTensor want = interpret(alone, arguments(alone, d, false)).results[0];
    int64_t offset = (d.sample * golden_.model().context + d.begin) * golden_.model().vocab;
    for (int64_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[offset + i], want[i], 1e-10 * exact()) << "document at " << d.sample << ", " << d.begin;
      ASSERT_NEAR(fast[offset + i], want[i], 1e-4) << "document at " << d.sample << ", " << d.begin;
    }
  }
}

TEST_P(DocumentMask, HasTheLossAndGradientsOfEachAlone) {
  Graph graph = gradient_graph(golden_.model(), kSamples, nullptr, true);
  expect_near(graph, interpret(graph, packed_arguments(graph)).results, 1e-6 * std::sqrt(exact()));
}

TEST_P(DocumentMask, HasThemOnTheCpuUnderEverySetting) {
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    Graph graph = gradient_graph(golden_.model(), kSamples, &setting.compile, true);
    expect_near(graph, run_on_cpu(graph, packed_arguments(graph)).results, 1e-5 * std::sqrt(exact()));
  }
}

TEST_P(DocumentMask, ComesNearInBf16) {
  double tolerance = 0.04 * double(golden_.model().layers);  // each block rounds
  for (bool on : {true, false}) {
    CompileConfig compile = on ? without({}, Precision::kBf16) : all_off(Precision::kBf16);
    Graph graph = gradient_graph(golden_.model(), kSamples, &compile, true);
    expect_near(graph, interpret(graph, packed_arguments(graph)).results, tolerance);
    expect_near(graph, run_on_cpu(graph, packed_arguments(graph)).results, tolerance);
  }
}

// Nothing of the mask is in a graph without it: what it costs and its bits are as if there were none.
TEST_P(DocumentMask, LeavesNoTraceWhenOff) {
  Graph graph = gradient_graph(golden_.model(), kSamples, nullptr);
  EXPECT_EQ(graph.find_argument("documents"), kNoValue);
  EXPECT_EQ(graph.find_argument("loss_weight"), kNoValue);
  if (golden_.model().window > 0) return;  // which attention takes as documents
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::attention && node.op != &op::attention_grad) continue;
    EXPECT_EQ(node.inputs.size(), size_t(node.op->min_inputs));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DocumentMask,
                         ::testing::Values("gpt2_tiny", "mistral_tiny", "qwen3_tiny", "modern_tiny",
                                           "modern_deep_tiny"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tokamak::test
