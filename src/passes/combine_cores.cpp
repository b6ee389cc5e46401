#include "passes/combine_cores.h"

#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/reduce.h"

#include <algorithm>

namespace tokamak {
namespace {

const CoreResult* find_result(const GroupCore& core, ValueId outer) {
  for (const CoreResult& result : core.results)
    if (result.outer == outer) return &result;
  return nullptr;
}

bool same_sides(const CoreValue& a, const CoreValue& b) {
  return a.along_rows == b.along_rows && a.along_cols == b.along_cols;
}

// Every value that passes from one to the other varies along the same sides in both.
bool links_agree(const GroupCore& producer, const GroupCore& consumer) {
  for (const CoreValue& value : consumer.values) {
    if (value.op) continue;
    const CoreResult* result = find_result(producer, value.outer);
    if (result && (value.raw || !same_sides(value, producer.values[size_t(result->value)]))) return false;
  }
  return true;
}

bool is_reduction(const CoreValue& value) { return value.op && value.op->fusion == Fusion::kReduction; }

// Sums over rows are for results only.
bool reads_column_sums(const GroupCore& core) {
  for (const CoreValue& value : core.values)
    for (int operand : value.operands)
      if (const CoreValue& read = core.values[size_t(operand)]; is_reduction(read) && sums_rows(core, read))
        return true;
  return false;
}

bool results_fit(const GroupCore& core) {
  for (const CoreResult& result : core.results) {
    const CoreValue& value = core.values[size_t(result.value)];
    bool reduced = is_reduction(value) && sums_rows(core, value);
    bool per_row = core.kind == &op::row && !value.along_cols && core.size(value) == core.rows;
    if (!core.is_full(value) && !per_row && !reduced) return false;
  }
  return true;
}

// Both over the same space already: the producer's values, then the consumer's with links resolved.
GroupCore join(const GroupCore& producer, const GroupCore& consumer, const OpDef* kind) {
  GroupCore out{kind, consumer.rows, consumer.cols, {}, {}};
  std::vector<int> from_producer, from_consumer;
  auto add_all = [&](const GroupCore& core, std::vector<int>& map, bool link) {
    for (CoreValue value : core.values) {
      for (int& operand : value.operands) operand = map[size_t(operand)];
      const CoreResult* result = link && !value.op ? find_result(producer, value.outer) : nullptr;
      map.push_back(result ? from_producer[size_t(result->value)] : out.add(std::move(value)));
    }
    for (const CoreResult& result : core.results)
      out.results.push_back({map[size_t(result.value)], result.outer, result.type});
  };
  add_all(producer, from_producer, false);
  add_all(consumer, from_consumer, true);
  return out;
}

}  // namespace

std::optional<GroupCore> combine_cores(const GroupCore& producer, const GroupCore& consumer) {
  auto attempt = [](const std::optional<GroupCore>& p, const std::optional<GroupCore>& c,
                    const OpDef* kind) -> std::optional<GroupCore> {
    if (!p || !c || p->rows != c->rows || p->cols != c->cols || !links_agree(*p, *c)) return {};
    GroupCore joined = join(*p, *c, kind);
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

std::optional<GroupCore> combine_row_column(const GroupCore& row, const GroupCore& column) {
  if (row.kind != &op::row || column.kind != &op::column || row.rows == 1 || row.cols == 1) return {};
  if (row.rows != column.rows || row.cols != column.cols || !links_agree(row, column)) return {};
  for (const CoreValue& value : column.values)
    if (is_reduction(value) && (value.op != &op::reduce_sum || !sums_rows(column, value))) return {};
  GroupCore joined = join(row, column, &op::row);
  if (!results_fit(joined) || reads_column_sums(joined)) return {};
  return joined;
}

namespace {

constexpr int kGeneratorNodes = 4;

// A constant or an index; the consumer may read an index as another vector as well.
std::optional<GroupCore> inline_value(const GroupCore& generator, const GroupCore& consumer) {
  const CoreValue& made = generator.values[0];
  GroupCore out{consumer.kind, consumer.rows, consumer.cols, {}, {}};
  std::vector<int> map;
  for (CoreValue value : consumer.values) {
    for (int& operand : value.operands) operand = map[size_t(operand)];
    if (!value.op && value.outer == generator.results[0].outer) {
      CoreValue copy = made;
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
  for (const CoreResult& result : consumer.results)
    out.results.push_back({map[size_t(result.value)], result.outer, result.type});
  return out;
}

// A core without inputs that the consumer reads as a matrix of its own space.
std::optional<GroupCore> inline_matrix(const GroupCore& generator, const GroupCore& consumer) {
  if (generator.rows != consumer.rows || generator.cols != consumer.cols || !links_agree(generator, consumer))
    return {};
  GroupCore out = join(generator, consumer, consumer.kind);
  std::erase_if(out.results, [&](const CoreResult& r) { return r.outer == generator.results[0].outer; });
  return out;
}

// The generator once for each of `times` matrices that lie below each other: an index along rows begins again.
std::optional<GroupCore> repeat_rows(GroupCore generator, int64_t times) {
  for (CoreValue& value : generator.values) {
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
std::optional<GroupCore> cut_rows(const GroupCore& consumer, const GroupCore& generator) {
  bool matrix = generator.rows > 1 && generator.cols > 1 && consumer.cols == generator.rows * generator.cols;
  if (consumer.kind != &op::flat || !matrix) return {};
  GroupCore out = consumer;
  out.rows = consumer.rows * generator.rows;
  out.cols = generator.cols;
  for (CoreValue& value : out.values) {
    bool linked = !value.op && value.outer == generator.results[0].outer;
    if (value.raw || value.op == &op::iota || (linked && value.along_rows)) return {};
    if (consumer.size(value) > 1 && !consumer.is_full(value) && !linked) return {};
    value.along_rows = value.along_cols = consumer.size(value) > 1;
  }
  return out;
}

}  // namespace

bool is_generator(const GroupCore& core) {
  return core.kind == &op::flat && core.num_nodes() <= kGeneratorNodes && core.inputs().empty() &&
         core.results.size() == 1;
}

std::optional<GroupCore> inline_generator(const GroupCore& generator, const GroupCore& consumer) {
  if (generator.values.size() == 1) return inline_value(generator, consumer);
  if (std::optional<GroupCore> same = inline_matrix(generator, consumer)) return same;
  std::optional<GroupCore> cut = cut_rows(consumer, generator);
  std::optional<GroupCore> repeated = repeat_rows(generator, consumer.rows);
  return cut && repeated ? inline_matrix(*repeated, *cut) : std::nullopt;
}

}  // namespace tokamak
