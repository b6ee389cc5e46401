#include "passes/combine_groups.h"

#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/reduce.h"

#include <algorithm>

namespace tokamak {
namespace {

const GroupResult* find_result(const GroupBody& group, ValueId outer) {
  for (const GroupResult& result : group.results)
    if (result.outer == outer) return &result;
  return nullptr;
}

bool same_sides(const GroupValue& a, const GroupValue& b) {
  return a.along_rows == b.along_rows && a.along_cols == b.along_cols;
}

// Every value that passes from one to the other varies along the same sides in both.
bool links_agree(const GroupBody& producer, const GroupBody& consumer) {
  for (const GroupValue& value : consumer.values) {
    const GroupResult* result = find_result(producer, value.outer);
    if (result && (value.op || !same_sides(value, producer.values[size_t(result->value)]))) return false;
  }
  return true;
}

// Sums over rows are for results only.
bool reads_column_sums(const GroupBody& group) {
  for (const GroupValue& value : group.values)
    for (int operand : value.operands)
      if (group.values[size_t(operand)].reduces_rows()) return true;
  return false;
}

bool results_fit(const GroupBody& group) {
  for (const GroupResult& result : group.results) {
    const GroupValue& value = group.values[size_t(result.value)];
    bool per_row = group.kind == &op::row && !value.along_cols && group.size(value) == group.rows;
    if (!group.is_full(value) && !per_row && !value.reduces_rows()) return false;
  }
  return true;
}

// Both over the same space already: the producer's values, then the consumer's with links resolved.
GroupBody join(const GroupBody& producer, const GroupBody& consumer, const OpDef* kind) {
  GroupBody out{kind, consumer.rows, consumer.cols, {}, {}};
  std::vector<int> from_producer, from_consumer;
  auto add_all = [&](const GroupBody& group, std::vector<int>& map, bool link) {
    for (GroupValue value : group.values) {
      for (int& operand : value.operands) operand = map[size_t(operand)];
      const GroupResult* result = link && !value.op ? find_result(producer, value.outer) : nullptr;
      map.push_back(result ? from_producer[size_t(result->value)] : out.add(std::move(value)));
    }
    for (const GroupResult& result : group.results)
      out.results.push_back({map[size_t(result.value)], result.outer, result.type});
  };
  add_all(producer, from_producer, false);
  add_all(consumer, from_consumer, true);
  return out;
}

// The same computation over another matrix: every value that had as many elements as the old space varies along the
// given sides of the new one. Nothing when a value does not allow it.
std::optional<GroupBody> respace(const GroupBody& group, int64_t rows, int64_t cols, bool along_rows, bool along_cols) {
  if (group.rows == rows && group.cols == cols && along_rows == along_cols) return group;
  int64_t total = group.size();
  if (group.kind != &op::flat || (along_rows ? rows : 1) * (along_cols ? cols : 1) != total) return {};
  GroupBody out = group;
  out.rows = rows;
  out.cols = cols;
  for (GroupValue& value : out.values) {
    int64_t size = group.size(value);
    if (size == 1) continue;
    if (size != total) return {};
    bool was_rows = value.along_rows, was_cols = value.along_cols;
    value.along_rows = along_rows && rows > 1;
    value.along_cols = along_cols && cols > 1;
    if (!value.is(op::iota)) continue;
    // An index along one side cannot be told after that side was cut in two, nor that along one of two sides in a line.
    bool was_line = was_rows != was_cols && value.attrs.get_int("dim") == int64_t(was_cols);
    if (!was_line || value.along_rows == value.along_cols) return {};
    value.attrs.set("dim", int64_t(value.along_cols));
  }
  return out;
}

}  // namespace

std::optional<GroupBody> combine_groups(const GroupBody& producer, const GroupBody& consumer) {
  auto attempt = [](const std::optional<GroupBody>& p, const std::optional<GroupBody>& c,
                    const OpDef* kind) -> std::optional<GroupBody> {
    if (!p || !c || p->rows != c->rows || p->cols != c->cols || !links_agree(*p, *c)) return {};
    GroupBody joined = join(*p, *c, kind);
    if (!results_fit(joined) || reads_column_sums(joined)) return {};
    return joined;
  };
  if (producer.kind == &op::column || (producer.kind == &op::row && consumer.kind == &op::column)) return {};
  const OpDef* kind = producer.kind == &op::row ? &op::row : consumer.kind;
  if (auto joined = attempt(producer, consumer, kind)) return joined;
  // The same matrix cut elsewhere, one value a row of it, or a scalar. A vector would be computed again for every row.
  constexpr std::pair<bool, bool> kSides[] = {{true, true}, {true, false}, {false, false}};
  for (auto [rows, cols] : kSides) {
    if (!cols && kind == &op::column) break;
    if (auto joined = attempt(respace(producer, consumer.rows, consumer.cols, rows, cols), consumer, kind))
      return joined;
    if (!rows) break;
    if (auto joined = attempt(producer, respace(consumer, producer.rows, producer.cols, rows, cols), kind))
      return joined;
  }
  return {};
}

bool only_sums(const GroupBody& group) {
  return std::all_of(group.values.begin(), group.values.end(),
                     [](const GroupValue& value) { return !value.is_reduction() || value.is(op::reduce_sum); });
}

std::optional<GroupBody> combine_row_column(const GroupBody& row, const GroupBody& column) {
  if (row.kind != &op::row || column.kind != &op::column || row.rows == 1 || row.cols == 1) return {};
  if (row.rows != column.rows || row.cols != column.cols || !links_agree(row, column)) return {};
  if (!only_sums(column)) return {};
  GroupBody joined = join(row, column, &op::row);
  if (!results_fit(joined) || reads_column_sums(joined)) return {};
  return joined;
}

namespace {

constexpr int kGeneratorNodes = 4;

// A constant or an index; the consumer may read an index as another vector as well.
std::optional<GroupBody> inline_value(const GroupBody& generator, const GroupBody& consumer) {
  const GroupValue& made = generator.values[0];
  GroupBody out{consumer.kind, consumer.rows, consumer.cols, {}, {}};
  std::vector<int> map;
  for (GroupValue value : consumer.values) {
    for (int& operand : value.operands) operand = map[size_t(operand)];
    if (!value.op && value.outer == generator.results[0].outer) {
      GroupValue copy = made;
      copy.along_rows = value.along_rows;
      copy.along_cols = value.along_cols;
      bool same_space = generator.rows == consumer.rows && generator.cols == consumer.cols && same_sides(made, value);
      bool vectors = made.along_rows != made.along_cols && value.along_rows != value.along_cols;
      if (made.op == &op::iota && !same_space) {
        if (!vectors || made.attrs.get_int("dim") != int64_t(made.along_cols)) return {};
        copy.attrs.set("dim", int64_t(value.along_cols));
      }
      value = std::move(copy);
    }
    map.push_back(out.add(std::move(value)));
  }
  for (const GroupResult& result : consumer.results)
    out.results.push_back({map[size_t(result.value)], result.outer, result.type});
  return out;
}

// A group without inputs that the consumer reads as a matrix of its own space.
std::optional<GroupBody> inline_matrix(const GroupBody& generator, const GroupBody& consumer) {
  if (generator.rows != consumer.rows || generator.cols != consumer.cols || !links_agree(generator, consumer))
    return {};
  GroupBody out = join(generator, consumer, consumer.kind);
  std::erase_if(out.results, [&](const GroupResult& r) { return r.outer == generator.results[0].outer; });
  return out;
}

// The generator once for each of `times` matrices that lie below each other: an index along rows begins again.
std::optional<GroupBody> repeat_rows(GroupBody generator, int64_t times) {
  for (GroupValue& value : generator.values) {
    if (value.op != &op::iota || !value.along_rows || value.attrs.get_int("dim") != 0) continue;
    int64_t period = value.attrs.get_int("period", generator.rows);
    if (generator.rows % period != 0) return {};
    value.attrs.set("period", period);
  }
  generator.rows *= times;
  return generator;
}

// Every row of the consumer reads the generator's whole matrix, a causal mask for one: the consumer over rows of that
// matrix's width instead, so that it fits what reduces along them.
std::optional<GroupBody> cut_rows(const GroupBody& consumer, const GroupBody& generator) {
  bool matrix = generator.rows > 1 && generator.cols > 1 && consumer.cols == generator.rows * generator.cols;
  if (consumer.kind != &op::flat || !matrix) return {};
  GroupBody out = consumer;
  out.rows = consumer.rows * generator.rows;
  out.cols = generator.cols;
  for (GroupValue& value : out.values) {
    bool linked = !value.op && value.outer == generator.results[0].outer;
    if (value.is(op::random_uniform) || value.is(op::iota) || (linked && value.along_rows)) return {};
    if (consumer.size(value) > 1 && !consumer.is_full(value) && !linked) return {};
    value.along_rows = value.along_cols = consumer.size(value) > 1;
  }
  return out;
}

}  // namespace

bool is_generator(const GroupBody& group) {
  return group.kind == &op::flat && group.num_nodes() <= kGeneratorNodes && group.inputs().empty() &&
         group.results.size() == 1;
}

std::optional<GroupBody> inline_generator(const GroupBody& generator, const GroupBody& consumer) {
  if (generator.values.size() == 1) return inline_value(generator, consumer);
  if (std::optional<GroupBody> same = inline_matrix(generator, consumer)) return same;
  std::optional<GroupBody> cut = cut_rows(consumer, generator);
  std::optional<GroupBody> repeated = repeat_rows(generator, consumer.rows);
  return cut && repeated ? inline_matrix(*repeated, *cut) : std::nullopt;
}

}  // namespace tokamak
