// A value of a group's body as a statement of device code. The element at hand is described by names that the templates
// define: `row`, `column` (of the first element of the vector) and `i` within it.
#pragma once

#include "backend/cuda/codegen/text.h"
#include "ops/group_body.h"

#include <functional>

namespace tokamak::cuda {

/// Where a value is computed: nowhere (a literal), once, once a row, once an element.
enum class Level : uint8_t { kLiteral, kScalar, kRow, kTile };

class Expression {
 public:
  /// `flattened`: the matrix is worked on as one line, `column` being the place in it.
  explicit Expression(const GroupBody& body, bool flattened = false);

  Level level(int value) const { return levels_[size_t(value)]; }
  /// "v3", or the literal.
  std::string name(int value) const;
  /// What is stored as the result: the value, or what it rounds where storing rounds alike.
  std::string stored(const GroupResult& result) const;
  /// "const float v3 = ...;  // gelu" of a value that is no argument, random vector or reduction.
  std::string statement(int value) const;
  /// The same of an argument, whose element at hand is read, too.
  std::string definition(int value) const;
  /// The right side of a statement, before it is rounded to the value's type.
  std::string unrounded(int value) const;
  /// Index of the first element at hand of an argument or of random numbers, in its own tensor.
  std::string place(int value) const;
  /// The declaration of an array of random numbers of a vector, u3.
  std::string random_vector(int value) const;
  /// The largest column below which every comparison of column numbers with a constant is true; the number of columns
  /// where there is no such comparison.
  int64_t unmasked_cols() const;
  /// Whether the value is such a comparison.
  bool is_column_limit(const GroupValue& v) const;

 private:
  std::string right_side(const GroupValue& v) const;
  std::string iota(const GroupValue& v) const;

  const GroupBody& body_;
  bool flattened_;
  std::vector<Level> levels_;
  std::vector<bool> coarse_;  // exponentials that need not be exact to the last bits
};

/// Code for one vector of elements: the loop over them, with what it reads.
struct VectorCode {
  std::vector<int> values;                 // to define, in order
  std::function<std::string(int)> source;  // where a value can be read, element i; "": it is computed here
  std::vector<std::string> actions;        // once per element, after the definitions
};
void write_vector(Text& text, const GroupBody& body, const Expression& expression, const VectorCode& code);

/// "void f(...)": the parameters of every function of the group. `in_place`: results may lie where inputs do.
std::string parameters(const GroupBody& body, bool in_place = false);

/// What every text begins with: what the group is, includes, and the constants kRows, kCols, kVector, Index.
std::string prelude(const GroupBody& body, int vector, const std::string& note);

/// Bytes of the narrowest type among the full inputs and results; 4 where there is none. Results of eight bits count as
/// 2: the registers of a thread do not hold 16 elements of each value.
int64_t narrowest_bytes(const GroupBody& body);

/// The largest power of two that divides n and is at most `limit`.
int vector_length(int64_t n, int64_t limit);

}  // namespace tokamak::cuda
