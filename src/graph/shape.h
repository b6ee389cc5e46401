// Dims of a tensor. A compiler copies shapes all the time, so they stand in the object itself and nothing is allocated.
// Tests: tests/graph/shape_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace tokamak {

/// Row-major; {} is a scalar. It is used as a std::vector<int64_t> is, and becomes one where that is asked for. More
/// than kMaxDims dims are a UserError, as only files can ask for them.
class Shape {
 public:
  static constexpr size_t kMaxDims = 8;
  using value_type = int64_t;
  using iterator = int64_t*;
  using const_iterator = const int64_t*;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(dims.begin(), dims.end()) {}
  Shape(const std::vector<int64_t>& dims) : Shape(dims.begin(), dims.end()) {}
  explicit Shape(size_t size, int64_t dim = 0) { resize(size, dim); }
  template <std::input_iterator Iterator>
  Shape(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  operator std::vector<int64_t>() const { return {begin(), end()}; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const int64_t* data() const { return dims_; }
  int64_t* begin() { return dims_; }
  int64_t* end() { return dims_ + size_; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + size_; }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  int64_t& operator[](size_t i) { return dims_[i]; }
  int64_t operator[](size_t i) const { return dims_[i]; }
  int64_t front() const { return dims_[0]; }
  int64_t& back() { return dims_[size_ - 1]; }
  int64_t back() const { return dims_[size_ - 1]; }

  void push_back(int64_t dim) {
    if (size_ == kMaxDims) too_many_dims();
    dims_[size_++] = dim;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t size, int64_t dim = 0) {
    while (size_ < size) push_back(dim);
    size_ = uint32_t(size);
  }
  iterator insert(const_iterator at, int64_t dim) { return insert(at, &dim, &dim + 1); }
  template <std::forward_iterator Iterator>
  iterator insert(const_iterator at, Iterator first, Iterator last) {
    auto place = at - begin();
    auto before = size_;
    for (; first != last; ++first) push_back(*first);
    std::rotate(begin() + place, begin() + before, end());
    return begin() + place;
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    iterator place = begin() + (first - begin());
    size_ = uint32_t(std::copy(last, const_iterator(end()), place) - begin());
    return place;
  }

  friend bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend auto operator<=>(const Shape& a, const Shape& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  [[noreturn]] static void too_many_dims();

  int64_t dims_[kMaxDims] = {};
  uint32_t size_ = 0;
};

}  // namespace tokamak
