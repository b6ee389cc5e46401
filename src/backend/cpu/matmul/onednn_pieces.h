// How a product goes to oneDNN: as one primitive, in pieces one after the other, or in pieces for one thread each.
// Tests: tests/backend/cpu/matmul_test.cpp.
#pragma once

#include "backend/cpu/matmul.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <vector>

namespace tokamak::cpu {

dnnl::engine dnnl_cpu_engine();

/// Throws dnnl::error where the library does not know the product. `s` is filled; the engine must outlive the result.
dnnl::matmul::primitive_desc describe_matmul(const MatmulShape& s, const MatmulOptions& o, bool adds_to_c,
                                             const dnnl::engine& engine);

/// One primitive's part of a matrix product, with where its operands begin (in elements).
struct MatmulPiece {
  size_t kind;  // in MatmulPieces::kinds
  int64_t a, b, c;
};

struct MatmulPieces {
  /// `s` is filled. Throws dnnl::error.
  MatmulPieces(const MatmulShape& s, const MatmulOptions& o);

  dnnl::engine engine = dnnl_cpu_engine();
  std::vector<dnnl::matmul::primitive_desc> kinds;  // pieces differ in length at the ends only
  std::vector<MatmulPiece> list;                    // those of one matrix where they are one thread's, else of all
  bool one_thread_each = false;  // all pieces of all matrices at once; else one after the other, each by all threads
  int64_t matrices = 1;          // where one_thread_each; else oneDNN knows of the batch

  size_t scratchpad_bytes() const;             // of all threads
  size_t scratchpad_bytes_of_a_piece() const;  // a multiple of 64
};

}  // namespace tokamak::cpu
