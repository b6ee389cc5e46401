// A std::vector of which the first few elements stand in the object itself, so that short lists allocate nothing: a
// compiler copies the operands and types of nodes all the time. Tests: tests/base/short_list_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace tokamak {

/// It is used as a std::vector<T> is, and becomes one, or is made of one, where that is at hand.
template <typename T, uint32_t kInPlace>
class ShortList {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortList() = default;
  ShortList(std::initializer_list<T> list) : ShortList(list.begin(), list.end()) {}
  ShortList(const std::vector<T>& list) : ShortList(list.data(), list.data() + list.size()) {}
  explicit ShortList(size_t size, const T& value = {}) { resize(size, value); }
  template <std::forward_iterator Iterator>
  ShortList(Iterator first, Iterator last) {
    insert(end(), first, last);
  }
  ShortList(const ShortList& other) { copy(other); }
  ShortList(ShortList&& other) noexcept { take(other); }
  ShortList& operator=(const ShortList& other) {
    if (this != &other) copy(other);
    return *this;
  }
  ShortList& operator=(ShortList&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }
  ~ShortList() { release(); }
  operator std::vector<T>() const { return {begin(), end()}; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return is_in_place() ? in_place_ : heap_; }
  const T* data() const { return is_in_place() ? in_place_ : heap_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void reserve(size_t size) {
    if (size > capacity_) grow(size);
  }
  void push_back(const T& element) {
    T copied = element;  // it may be one of these
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = copied;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t size, const T& value = {}) {
    reserve(size);
    if (size > size_) std::fill(end(), data() + size, value);
    size_ = uint32_t(size);
  }
  /// Elements of another list.
  template <std::forward_iterator Iterator>
  iterator insert(const_iterator at, Iterator first, Iterator last) {
    auto place = at - begin();
    auto before = size_;
    reserve(size_ + size_t(std::distance(first, last)));
    for (; first != last; ++first) data()[size_++] = *first;
    std::rotate(begin() + place, begin() + before, end());
    return begin() + place;
  }
  iterator insert(const_iterator at, std::initializer_list<T> list) { return insert(at, list.begin(), list.end()); }
  iterator insert(const_iterator at, const T& element) { return insert(at, {element}); }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    iterator place = begin() + (first - begin());
    size_ = uint32_t(std::copy(last, const_iterator(end()), place) - begin());
    return place;
  }

  friend bool operator==(const ShortList& a, const ShortList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const ShortList& a, const ShortList& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool is_in_place() const { return capacity_ == kInPlace; }
  void copy(const ShortList& other) {
    size_ = 0;
    reserve(other.size_);
    std::copy(other.begin(), other.end(), data());
    size_ = other.size_;
  }
  void grow(size_t size) {
    static_assert(std::is_trivially_copyable_v<T>);
    size = std::max<size_t>(size, 2 * size_t(capacity_));
    auto* larger = new T[size];
    std::copy(begin(), end(), larger);
    release();
    heap_ = larger;
    capacity_ = uint32_t(size);
  }
  void release() {
    if (!is_in_place()) delete[] heap_;
    capacity_ = kInPlace;
  }
  // What this had is released already.
  void take(ShortList& other) {
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kInPlace);
    if (is_in_place())
      std::copy(other.in_place_, other.in_place_ + size_, in_place_);
    else
      heap_ = other.heap_;
  }

  uint32_t size_ = 0, capacity_ = kInPlace;
  union {
    T in_place_[kInPlace] = {};
    T* heap_;
  };
};

}  // namespace tokamak
