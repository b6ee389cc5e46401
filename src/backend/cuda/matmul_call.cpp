#include "backend/cuda/matmul_call.h"

#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr int64_t kOperandAlignment = 64;  // bytes: that of every value of a plan

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return CUDA_R_16BF;
    case DType::kF16: return CUDA_R_16F;
    case DType::kF8E4M3: return CUDA_R_8F_E4M3;
    case DType::kF8E5M2: return CUDA_R_8F_E5M2;
    default: return CUDA_R_32F;
  }
}

cublasLtEpilogue_t library_epilogue(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kBias: return CUBLASLT_EPILOGUE_BIAS;
    case MatmulEpilogue::kBiasGelu: return CUBLASLT_EPILOGUE_GELU_BIAS;
    case MatmulEpilogue::kBiasGeluAux: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case MatmulEpilogue::kGeluGrad: return CUBLASLT_EPILOGUE_DGELU;
    case MatmulEpilogue::kGeluGradSums:
    case MatmulEpilogue::kFunction: TOKAMAK_CHECK(false, "cuBLASLt has no such matmul");
    case MatmulEpilogue::kNone: break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

template <typename T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  TOKAMAK_CUDA(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

// Tensor cores keep some 14 bits of a sum of eight bits, so that what is 2^-13 of it is lost: of the gradient of a
// row's logits all words but a few, which together weigh as much. Such sums are added up in f32 every some terms.
bool is_exact(const MatmulProblem& p) { return p.a == NumberFormat::kF8E5M2; }

// A stored row-major matrix of (rows, cols), which the library reads as its transpose.
void make_layout(cublasLtMatrixLayout_t* layout, DType dtype, int64_t rows, int64_t cols, int64_t batch) {
  TOKAMAK_CUDA(cublasLtMatrixLayoutCreate(layout, data_type(dtype), uint64_t(cols), uint64_t(rows), cols));
  if (batch == 1) return;
  int32_t count = int32_t(batch);
  int64_t stride = rows * cols;
  TOKAMAK_CUDA(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  TOKAMAK_CUDA(
      cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
}

class Preference {
 public:
  Preference() { TOKAMAK_CUDA(cublasLtMatmulPreferenceCreate(&preference_)); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    TOKAMAK_CUDA(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value));
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

// Every matrix of a batch, and every row, begins at a multiple of this.
uint32_t alignment(DType dtype, int64_t cols) {
  return uint32_t(std::gcd(kOperandAlignment, cols * dtype_bytes(dtype)));
}

// Of the ways to add up parts of a sum that were computed apart (split-K), those that give the same bits every time and
// keep f32 until the end. Not INPLACE: parts are added to the output in the order in which they come, counters in the
// workspace only keep them apart. OUTPUT_TYPE rounds parts to the output's type.
uint32_t allowed_reductions(DType output) {
  uint32_t allowed = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (output == DType::kF32) allowed |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  return allowed;
}

}  // namespace

MatmulCall::MatmulCall(const MatmulProblem& problem) : problem_(problem) {
  TOKAMAK_CHECK(problem.batch <= INT32_MAX, "a batch of {} matmuls", problem.batch);
  TOKAMAK_CHECK(has_library_formats(problem), "cuBLASLt has no matmul {}", problem.key());
  describe_operation();
  describe_operands();
}

MatmulCall::~MatmulCall() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, output_})
    if (layout) cublasLtMatrixLayoutDestroy(layout);
  if (operation_) cublasLtMatmulDescDestroy(operation_);
}

void MatmulCall::describe_operation() {
  const MatmulProblem& p = problem_;
  cublasComputeType_t compute = p.a == NumberFormat::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  TOKAMAK_CUDA(cublasLtMatmulDescCreate(&operation_, compute, CUDA_R_32F));
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(p.epilogue));
  if (p.bias_bytes() > 0) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.output));
  if (p.aux_bytes() > 0) {
    set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
    if (p.batch > 1) set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, p.m * p.n);
  }
  if (p.scaled) set(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t(!is_exact(p)));
  // The search for algorithms does not read these addresses, only how they are aligned.
  void* aligned = reinterpret_cast<void*>(uintptr_t(kOperandAlignment));
  set_pointers({.bias = aligned, .aux = aligned, .scale_a = aligned, .scale_b = aligned});
}

void MatmulCall::set_pointers(const MatmulOperands& operands) {
  if (problem_.bias_bytes() > 0) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (problem_.aux_bytes() > 0) set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  if (!problem_.scaled) return;
  set(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scale_b);
  set(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scale_a);
}

void MatmulCall::describe_operands() {
  const MatmulProblem& p = problem_;
  make_layout(&a_, storage_of(p.a), p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, p.batch);
  make_layout(&b_, storage_of(p.b), p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, p.batch);
  make_layout(&output_, p.output, p.m, p.n, p.batch);
}

std::vector<MatmulAlgorithm> MatmulCall::candidates(cublasLtHandle_t handle, int64_t workspace_limit, int count) const {
  const MatmulProblem& p = problem_;
  Preference preference;
  uint32_t of_output = alignment(p.output, p.n);
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspace_limit));
  preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, allowed_reductions(p.output));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(storage_of(p.b), p.trans_b ? p.k : p.n));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(storage_of(p.a), p.trans_a ? p.m : p.k));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_output);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_output);
  std::vector<cublasLtMatmulHeuristicResult_t> found(size_t(count), cublasLtMatmulHeuristicResult_t{});
  int n = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, output_, output_, preference.get(),
                                                         count, found.data(), &n);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check_cuda(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<MatmulAlgorithm> usable;
  for (int i = 0; i < n; ++i)
    if (found[size_t(i)].state == CUBLAS_STATUS_SUCCESS)
      usable.push_back({found[size_t(i)].algo, int64_t(found[size_t(i)].workspaceSize)});
  return usable;
}

std::optional<MatmulAlgorithm> MatmulCall::check(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, operation_, b_, a_, output_, output_, &algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return MatmulAlgorithm{algorithm, int64_t(result.workspaceSize)};
}

void MatmulCall::run(cublasLtHandle_t handle, const MatmulOperands& operands, const MatmulAlgorithm& algorithm,
                     void* workspace, cudaStream_t stream) {
  const float one = 1, beta = problem_.accumulate ? 1 : 0;
  const void* addend = problem_.accumulate ? operands.addend : operands.output;
  set_pointers(operands);
  cublasStatus_t status =
      cublasLtMatmul(handle, operation_, &one, operands.b, b_, operands.a, a_, &beta, addend, output_, operands.output,
                     output_, &algorithm.algorithm, workspace, size_t(algorithm.workspace_bytes), stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw_cuda_error("cublasLtMatmul", fmt::format("{} of {}", describe(status), problem_.key()));
}

}  // namespace tokamak::cuda
