// The types of a node's operands, where they are: a list that copies nothing.
#pragma once

#include "graph/graph.h"

#include <initializer_list>
#include <iterator>
#include <span>

namespace tokamak {

/// Valid as long as what it shows.
class OperandTypes {
 public:
  /// Of values of a graph, to which no node is added meanwhile.
  OperandTypes(const Graph& graph, std::span<const ValueId> values)
      : types_(graph.types().data()), values_(values.data()), size_(values.size()) {}
  /// To the end of the expression in which they stand.
  OperandTypes(std::initializer_list<ValueType> types) : types_(std::data(types)), size_(types.size()) {}

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = ValueType;
    using difference_type = std::ptrdiff_t;
    using pointer = const ValueType*;
    using reference = const ValueType&;

    Iterator() = default;
    Iterator(const OperandTypes* list, size_t at) : list_(list), at_(at) {}
    const ValueType& operator*() const { return (*list_)[at_]; }
    const ValueType* operator->() const { return &(*list_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {list_, at_++}; }
    Iterator operator+(std::ptrdiff_t steps) const { return {list_, at_ + size_t(steps)}; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const OperandTypes* list_ = nullptr;
    size_t at_ = 0;
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const ValueType& operator[](size_t i) const { return types_[values_ ? size_t(values_[i]) : i]; }
  const ValueType& front() const { return (*this)[0]; }
  const ValueType& back() const { return (*this)[size_ - 1]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }
  operator ValueTypes() const { return {begin(), end()}; }

 private:
  const ValueType* types_;
  const ValueId* values_ = nullptr;  // null: the types stand one behind the other
  size_t size_;
};

}  // namespace tokamak
