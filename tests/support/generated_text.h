// What generation is compared with: the likeliest token by the forward pass over the whole text, at each length.
#pragma once

#include "compile/step_compiler.h"
#include "config/config.h"
#include "exec/program.h"
#include "graph/builder.h"
#include "run/generator.h"
#include "run/session.h"
#include "tests/support/family_logits.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tokamak::test {

/// The small initial weights make all logits alike; larger ones make a choice that depends on the whole text.
inline void write_large_weights(const ModelConfig& model, TensorStore& store) {
  std::vector<ParameterInfo> parameters = model_parameters(model);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[i];
    std::vector<float> values = init_parameter(info, int64_t(i), 5);
    if (info.shape.size() == 2)
      for (float& value : values) value *= 10;
    store.write_share(info.name, values.data());
  }
}
inline void write_large_weights(Session& session) {
  write_large_weights(session.resolved().asked.model, session.store());
}

class FullPass {
 public:
  FullPass(const RunConfig& config, const Platform& platform, Backend& backend, const TensorStore& trained)
      : config_(config), platform_(platform), backend_(backend), trained_(trained) {}

  /// The likeliest token after `window`, from the whole of it.
  int32_t next(std::span<const int32_t> window) {
    auto length = int64_t(window.size());
    Program& program = program_for(length);
    program.set_input("tokens", window.data(), length * 4);
    program.run();
    std::vector<float> logits(size_t(length * vocab_rows()));
    program.get_result("logits", logits.data(), int64_t(logits.size()) * 4);
    auto last = logits.end() - vocab_rows();
    return int32_t(std::max_element(last, last + config_.model.vocab) - last);
  }

  /// `prompt` continued by `count` tokens; of a full context the newer half is kept, and of a longer prompt as much as
  /// leaves room for the count, where that is more.
  std::vector<int32_t> continue_text(std::vector<int32_t> tokens, int64_t count) {
    auto context = size_t(config_.model.context), prompt = tokens.size();
    size_t kept = std::max(context / 2, context - std::min(size_t(count), context));
    size_t begin = prompt > context ? prompt - kept : 0;  // of what the model sees
    for (int64_t i = 0; i < count; ++i) {
      if (tokens.size() - begin > context) begin = tokens.size() - context / 2;
      tokens.push_back(next(std::span(tokens).subspan(begin)));
    }
    return {tokens.begin() + int64_t(prompt), tokens.end()};
  }

 private:
  int64_t vocab_rows() const { return trained_.type(model_parameters(config_.model)[0].name).shape[0]; }

  Program& program_for(int64_t length) {
    std::unique_ptr<Program>& program = programs_[length];
    if (program) return *program;
    ModelConfig model = config_.model;
    model.vocab = vocab_rows();
    Graph graph("full");
    GraphBuilder g(graph);
    graph.add_result("logits", logits_of(g, model, g.input("tokens", {DType::kI32, {1, length}})));
    program = std::make_unique<Program>(
        compile_inference(std::move(graph), resolve(config_, platform_.target), platform_).plan, backend_, store_);
    copy_parameters();
    return *program;
  }

  // A store of its own: to it the rows of padding are a vocabulary like any other. Tables that are not padded have
  // zeros in those that no token reads.
  void copy_parameters() {
    for (const std::string& name : store_.names()) {
      std::vector<std::byte> bytes(size_t(num_bytes(store_.type(name))));
      trained_.read(name, bytes.data(), std::min(int64_t(bytes.size()), num_bytes(trained_.type(name))));
      store_.write(name, bytes.data(), int64_t(bytes.size()));
    }
  }

  const RunConfig& config_;
  const Platform& platform_;
  Backend& backend_;
  const TensorStore& trained_;
  TensorStore store_{backend_};
  std::map<int64_t, std::unique_ptr<Program>> programs_;
};

/// Tokens of a text that depend on its number.
inline std::vector<int32_t> some_tokens(int64_t length, int64_t number = 0) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < length; ++i) tokens.push_back(int32_t((7 + 13 * number + i * i * 31) % 301));
  return tokens;
}

}  // namespace tokamak::test
