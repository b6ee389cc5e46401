#include "graph/node_error.h"

#include "graph/op_def.h"

namespace tokamak {

std::string describe(const Node& node) {
  auto list = [](const ValueIds& values) {
    std::string text;
    for (ValueId value : values) text += fmt::format("{}%{}", text.empty() ? "" : ", ", value);
    return text;
  };
  std::string call = fmt::format("{}({})", node.op ? node.op->name : "?", list(node.inputs));
  return node.outputs.empty() ? call : list(node.outputs) + " = " + call;
}

}  // namespace tokamak
