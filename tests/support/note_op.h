// An op with effects, for tests: gives its input as it is, and notes its `id` under what it is `on`.
#pragma once

#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "graph/text.h"
#include "ops/all_ops.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tokamak::test {

using Notes = std::map<std::string, std::vector<int64_t>>;

/// What was noted since it was last taken.
inline Notes& notes() {
  static Notes notes;
  return notes;
}
inline Notes take_notes() { return std::exchange(notes(), {}); }

namespace note {
inline constexpr AttrDef kAttrs[] = {{"id"}, {"on"}};
inline ValueTypes infer(const NodeSpec& spec) { return {spec.inputs[0]}; }
inline void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  notes()[node.attrs.get_string("on")].push_back(node.attrs.get_int("id"));
  out[0].data = in[0]->data;
}
inline std::string effects(const Node& node) { return node.attrs.get_string("on"); }
}  // namespace note

inline constinit const OpDef note_op = {.name = "note",
                                        .attrs = note::kAttrs,
                                        .infer = note::infer,
                                        .no_gradient = "is appended to finished graphs",
                                        .reference = note::reference,
                                        .effects = note::effects};

inline ValueId add_note(GraphBuilder& g, ValueId x, int64_t id, const std::string& on = "a") {
  return g.add1(note_op, {x}, {{"id", id}, {"on", on}});
}

/// Graphs as text, with `note`.
inline Graph parse_with_notes(std::string_view text) {
  return parse_graph(text, [](std::string_view name) { return name == note_op.name ? &note_op : find_op(name); });
}

}  // namespace tokamak::test
