#include "advise/published_runs.h"

#include "config/cluster.h"
#include "config/gpus.h"
#include "graph/gpu_target.h"

#include <cmath>

namespace tokamak {
namespace {

// Abstracts of arXiv 2307.08691 and 2407.08608: FlashAttention reached 25 to 40% of an A100's peak, the second version
// 50 to 73%, and 35% of an H100's; the first is taken for half of that there.
constexpr double kFirstOnAmpere = 0.30, kFirstOnHopper = 0.175, kSecondOnAmpere = 0.6, kSecondOnHopper = 0.35;

// Bytes of 16-bit elements of the residual stream that kernels of a block read and write, beside products and
// attention. Ours, forward: two norms with a sum 16, GELU in the product; backward: norms 16, sums over columns 10.
constexpr double kOursForward = 16, kOursBackward = 26;
// A kernel for each op. Forward: norms 8, GELU over 4 h 16, copies of q, k and v 12, sums 12; backward: 20, 24, 12, 12.
constexpr double kEagerForward = 48, kEagerBackward = 68;
// Megatron: norms 8, bias and GELU 16, bias and sum 12; backward 20, 24, 8.
constexpr double kMegatronForward = 36, kMegatronBackward = 52;
// Of a logit, beside ours: a cast to fp32 6, the logarithm of the softmax 8, backward 8 and 6.
constexpr double kLogit = 28;

constexpr Software kFused = {"as ours", "flash attention of the GPU's own generation, fused kernels"};
constexpr Software kFlash1 = {.name = "fused, FlashAttention 1",
                              .about = "attention at 30% of an A100's peak, fused kernels",
                              .attention_ampere = kFirstOnAmpere};
constexpr Software kEager = {.name = "eager, FlashAttention 1",
                             .about = "norms, GELU, sums, copies and the loss are kernels of their own",
                             .attention_ampere = kFirstOnAmpere,
                             .attention_hopper = kFirstOnHopper,
                             .forward_bytes = kEagerForward - kOursForward,
                             .backward_bytes = kEagerBackward - kOursBackward,
                             .logit_bytes = kLogit};
constexpr Software kMegatron = {.name = "Megatron with flash attention",
                                .about =
                                    "FlashAttention 1 on A100, 2 on H100; norms, GELU, sums and the loss by kernels "
                                    "of their own, each fused with its bias",
                                .attention_ampere = kFirstOnAmpere,
                                .attention_hopper = kSecondOnHopper,
                                .forward_bytes = kMegatronForward - kOursForward,
                                .backward_bytes = kMegatronBackward - kOursBackward,
                                .logit_bytes = kLogit};

// Llama's blocks, with 3.5 times the width between the MLP's matrices and keys and values of a quarter of the heads.
// Ours, forward: norms and sums 16, rotation of q and k 5, the gate 21; backward: norms 16, rotation 5, the gate 35.
constexpr double kOurLlamaForward = 42, kOurLlamaBackward = 56;
// torchtitan rotates as complex numbers in fp32, which torch.compile leaves to three kernels, 20 for each element of q
// and k (models/llama/model.py; what pytorch.org/blog/maximizing-training-throughput says of them), so 20 more than
// ours, and writes k and v once for each head, 4.5 with what it reads; backward the same.
constexpr double kTitanForward = kOurLlamaForward + 24.5, kTitanBackward = kOurLlamaBackward + 24.5;
// A kernel for each op: norms in fp32 36 each, complex rotation 25, k and v for each head 4.5, SiLU and product 35,
// sums 12; backward: norms 60 each, the gate 63, the others as forward.
constexpr double kEagerLlamaForward = 149, kEagerLlamaBackward = 225;
// FSDP2 copies what it gathers into parameters, twice 4, and gradients into fp32 for their sum, 6.
constexpr double kFsdp2 = 14;

constexpr Software kTitan = {.name = "torchtitan, compiled blocks",
                             .about =
                                 "FlashAttention 2 at 35% of an H100's peak; complex rotations, keys and values "
                                 "for each head, the loss and FSDP2's copies by kernels of their own",
                             .attention_hopper = kSecondOnHopper,
                             .forward_bytes = kTitanForward - kOurLlamaForward,
                             .backward_bytes = kTitanBackward - kOurLlamaBackward,
                             .logit_bytes = kLogit,
                             .parameter_bytes = kFsdp2};
constexpr Software kCompiled = {
    .name = "fms-fsdp, compiled",
    .about = "FlashAttention 2 at 60% of an A100's and 35% of an H100's peak, fused kernels",
    .attention_ampere = kSecondOnAmpere,
    .attention_hopper = kSecondOnHopper};
constexpr Software kEager2 = {.name = "eager, FlashAttention 2",
                              .about = "the same attention; Llama with a kernel for each op",
                              .attention_ampere = kSecondOnAmpere,
                              .attention_hopper = kSecondOnHopper,
                              .forward_bytes = kEagerLlamaForward - kOurLlamaForward,
                              .backward_bytes = kEagerLlamaBackward - kOurLlamaBackward,
                              .logit_bytes = kLogit};
constexpr Software kMatrices = {
    .name = "matrices", .about = "whole attention matrices, before flash attention", .matrices = true};

constexpr PublishedSource kMpt = {"MPT", "mosaicml/llm-foundry, scripts/train/benchmarking/README.md"};
constexpr PublishedSource kFlashReadme = {"flash-attention", "Dao-AILab/flash-attention, training/README.md"};
constexpr PublishedSource kLlmC = {"llm.c", "karpathy/llm.c, scripts/run_gpt2_{124M,774M,1558M}.sh"};
constexpr PublishedSource kPax = {
    "pax, TE",
    "NVIDIA/JAX-Toolbox, rosetta/rosetta/projects/pax/README.md (23.08); what is computed "
    "again is of google/paxml, contrib/gpu/scripts_gpu/configs.py"};
constexpr PublishedSource kTorchtitan = {
    "torchtitan",
    "pytorch/torchtitan: benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3 without float8; with tensor ranks "
    "benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md, bfloat16 with async TP; of A100, docs/performance.md of "
    "April 2024"};
constexpr PublishedSource kFms = {
    "fms-fsdp",
    "foundation-model-stack/fms-fsdp, README.md of 9 May 2024 (compiled), and pytorch.org/blog/maximizing-training "
    "(eager); what blocks computed again is by HFU over MFU there"};
constexpr PublishedSource kMegatron2024 = {"Megatron 2024",
                                           "NVIDIA/Megatron-LM, README.md of 2024: a table that is a picture", false};
constexpr PublishedSource kZeroBubble = {
    "zero bubble",
    "arXiv 2401.10241, table 4; layers by the rule of "
    "sail-sg/zero-bubble-pipeline-parallelism, README.md (two fewer than a multiple "
    "of the stages), which the models' sizes confirm with 32,000 tokens",
    false};
constexpr PublishedSource kBloom = {
    "BLOOM",
    "bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles-prequel.md, tables of "
    "25 February 2022"};
constexpr PublishedSource kKorthikanti = {"Korthikanti", "arXiv 2205.05198, table 5", false};
constexpr PublishedSource kNemo = {"NeMo", "NVIDIA/NeMo-Framework-Launcher, README.md of 23.05, section 7.1.1"};
constexpr PublishedSource kNanoGpt = {"nanoGPT", "karpathy/nanoGPT, issue 110 (February 2023)"};

constexpr std::string_view kHybrid =
    "its parameters were divided within a node and gradients summed between nodes (HSDP), which no layout here does; "
    "it is predicted as ZeRO 3 over all";
constexpr std::string_view kUnsure =
    "what it computed again is not sure: no products by configs.py, which may be newer; with all of them it is "
    "predicted 5% faster than what is published";

// Models of several runs.
constexpr std::string_view kMpt760m =
    "model.layers=24 model.heads=12 model.width=1536 model.context=2048 model.vocab=50368 model.bias=false";
constexpr std::string_view kMpt1b =
    "model.layers=24 model.heads=16 model.width=2048 model.context=2048 model.vocab=50368 model.bias=false";
constexpr std::string_view kMpt3b =
    "model.layers=32 model.heads=20 model.width=2560 model.context=2048 model.vocab=50368 model.bias=false";
constexpr std::string_view kMpt7b =
    "model.layers=32 model.heads=32 model.width=4096 model.context=2048 model.vocab=50368 model.bias=false";
constexpr std::string_view kMpt13b =
    "model.layers=40 model.heads=40 model.width=5120 model.context=2048 model.vocab=50368 model.bias=false";
constexpr std::string_view kMpt30b =
    "model.layers=48 model.heads=56 model.width=7168 model.context=2048 model.vocab=50368 model.bias=false";
constexpr std::string_view kGpt5b =
    "model.layers=24 model.heads=32 model.width=4096 model.context=2048 model.vocab=50304";
constexpr std::string_view kZeroBubble1b =
    "model.layers=22 model.heads=24 model.width=2304 model.context=1024 model.vocab=32000 model.tie_weights=false";
constexpr std::string_view kZeroBubble6b =
    "model.layers=30 model.heads=32 model.width=4096 model.context=1024 model.vocab=32000 model.tie_weights=false";
constexpr std::string_view kZeroBubble14b =
    "model.layers=46 model.heads=40 model.width=5120 model.context=1024 model.vocab=32000 model.tie_weights=false";
constexpr std::string_view kZeroBubble28b =
    "model.layers=62 model.heads=48 model.width=6144 model.context=1024 model.vocab=32000 model.tie_weights=false";
constexpr std::string_view kBloom181b =
    "model.layers=72 model.heads=64 model.width=14336 model.context=2048 model.vocab=250880";
constexpr std::string_view kLlama8b = R"(model.preset="llama3-8b" model.context=8192)";
constexpr std::string_view kLlama70b = R"(model.preset="llama3-70b" model.context=8192)";
constexpr std::string_view kLlama7b = R"(model.preset="llama2-7b" model.context=4096)";
constexpr std::string_view kLlama13b = R"(model.preset="llama2-13b" model.context=4096)";
constexpr std::string_view kLlama34b =
    R"(model.preset="llama2-70b" model.context=4096 model.layers=48 model.hidden=22016)";
constexpr std::string_view kLlama70b2 = R"(model.preset="llama2-70b" model.context=4096)";

// torchtitan keeps every second product's result (_save_list in parallelisms/parallelize_llama.py at 9dec370), of
// Llama 3 8B's seven those of k, o and the second of the gate not: 36.5% of the products. All else is computed again.
constexpr ComputedAgain kEverySecond = {.products = 0.365, .bytes = kTitanForward};
constexpr ComputedAgain kEverySecondEager = {.products = 0.365, .bytes = kEagerLlamaForward};
// So much of the blocks.
constexpr ComputedAgain again_of_blocks(double share, double bytes) { return {share, share, share * bytes}; }

constexpr PublishedRun kRuns[] = {
    {&kMpt, &kEager, "125m, T=2048, 8 A100, 32 a GPU", "dgx-a100",
     "model.layers=12 model.heads=12 model.width=768 model.context=2048 model.vocab=50368 model.bias=false",
     "mesh.data=8 mesh.zero=3 train.batch=256 train.total_batch=1048576", 1133901, 0},
    {&kMpt, &kEager, "760m, T=2048, 8 A100, 24 a GPU", "dgx-a100", kMpt760m,
     "mesh.data=8 mesh.zero=3 train.batch=192 train.total_batch=786432", 259472, 0},
    {&kMpt, &kEager, "1b, T=2048, 8 A100, 14 a GPU", "dgx-a100", kMpt1b,
     "mesh.data=8 mesh.zero=3 train.batch=112 train.total_batch=917504", 164109, 0},
    {&kMpt, &kEager, "1b, T=8192, 8 A100, 3 a GPU", "dgx-a100",
     "model.layers=24 model.heads=16 model.width=2048 model.context=8192 model.vocab=50368 model.bias=false",
     "mesh.data=8 mesh.zero=3 train.batch=24 train.total_batch=786432", 110516, 0},
    {&kMpt, &kEager, "3b, T=2048, 8 A100, 10 a GPU", "dgx-a100", kMpt3b,
     "mesh.data=8 mesh.zero=3 train.batch=80 train.total_batch=327680", 86491, 0},
    {&kMpt, &kEager, "3b, T=8192, 8 A100, 3 a GPU", "dgx-a100",
     "model.layers=32 model.heads=20 model.width=2560 model.context=8192 model.vocab=50368 model.bias=false",
     "mesh.data=8 mesh.zero=3 train.batch=24 train.total_batch=1179648", 61567, 0},
    {&kMpt, &kEager, "7b, T=2048, 8 A100, 6 a GPU", "dgx-a100", kMpt7b,
     "mesh.data=8 mesh.zero=3 train.batch=48 train.total_batch=196608", 37130, 0},
    {&kMpt, &kEager, "13b, T=2048, 8 A100, 2 a GPU", "dgx-a100", kMpt13b,
     "mesh.data=8 mesh.zero=3 train.batch=16 train.total_batch=98304", 18097, 0},
    {&kMpt, &kEager, "7b, T=8192, 8 A100, 8 a GPU, all again", "dgx-a100",
     "model.layers=32 model.heads=32 model.width=4096 model.context=8192 model.vocab=50368 model.bias=false",
     R"(mesh.data=8 mesh.zero=3 train.batch=64 train.total_batch=1048576 compile.recompute="full")", 25655, 0},
    {&kMpt, &kEager, "13b, T=4096, 8 A100, 10 a GPU, all again", "dgx-a100",
     "model.layers=40 model.heads=40 model.width=5120 model.context=4096 model.vocab=50368 model.bias=false",
     R"(mesh.data=8 mesh.zero=3 train.batch=80 train.total_batch=983040 compile.recompute="full")", 16482, 0},
    {&kMpt, &kEager, "30b, T=2048, 8 A100, 3 a GPU, all again", "dgx-a100", kMpt30b,
     R"(mesh.data=8 mesh.zero=3 train.batch=24 train.total_batch=1032192 compile.recompute="full")", 7330, 0},
    {&kMpt, &kEager, "70b, T=2048, 64 A100, 8 a GPU, all again", "dgx-a100",
     "model.layers=80 model.heads=64 model.width=8192 model.context=2048 model.vocab=50368 model.bias=false",
     R"(mesh.data=64 mesh.zero=3 train.batch=512 train.total_batch=4194304 compile.recompute="full")", 26274, 0},
    {&kMpt, &kEager, "1b, T=2048, 128 A100 40 GB, 10 a GPU", "a100-40-roce", kMpt1b,
     "mesh.data=128 mesh.zero=3 train.batch=1280 train.total_batch=2621440", 2386897, 0},
    {&kMpt, &kEager, "3b, T=2048, 64 A100 40 GB, 6 a GPU", "a100-40-roce", kMpt3b,
     "mesh.data=64 mesh.zero=3 train.batch=384 train.total_batch=786432", 623167, 0},
    {&kMpt, &kEager, "7b, T=2048, 128 A100 40 GB, 18 a GPU, all again", "a100-40-roce", kMpt7b,
     R"(mesh.data=128 mesh.zero=3 train.batch=2304 train.total_batch=4718592 compile.recompute="full")", 463749, 0},
    {&kMpt, &kEager, "13b, T=2048, 64 A100 40 GB, 16 a GPU, all again", "a100-40-roce", kMpt13b,
     R"(mesh.data=64 mesh.zero=3 train.batch=1024 train.total_batch=2097152 compile.recompute="full")", 126479, 0},
    {&kMpt, &kEager, "760m, T=2048, 8 H100, 24 a GPU", "dgx-h100", kMpt760m,
     "mesh.data=8 mesh.zero=3 train.batch=192 train.total_batch=786432", 505177, 0},
    {&kMpt, &kEager, "1b, T=2048, 64 H100, 20 a GPU", "dgx-h100", kMpt1b,
     "mesh.data=64 mesh.zero=3 train.batch=1280 train.total_batch=2621440", 2841754, 0},
    {&kMpt, &kEager, "1b, T=32768, 8 H100, 1 a GPU", "dgx-h100",
     "model.layers=24 model.heads=16 model.width=2048 model.context=32768 model.vocab=50368 model.bias=false",
     "mesh.data=8 mesh.zero=3 train.batch=8 train.total_batch=1048576", 96203, 0},
    {&kMpt, &kEager, "3b, T=1024, 8 H100, 20 a GPU", "dgx-h100",
     "model.layers=32 model.heads=20 model.width=2560 model.context=1024 model.vocab=50368 model.bias=false",
     "mesh.data=8 mesh.zero=3 train.batch=160 train.total_batch=983040", 216369, 0},
    {&kMpt, &kEager, "3b, T=2048, 64 H100, 6 a GPU", "dgx-h100", kMpt3b,
     "mesh.data=64 mesh.zero=3 train.batch=384 train.total_batch=2359296", 1441663, 0},
    {&kMpt, &kEager, "7b, T=2048, 8 H100, 6 a GPU", "dgx-h100", kMpt7b,
     "mesh.data=8 mesh.zero=3 train.batch=48 train.total_batch=98304", 85144, 0},
    {&kMpt, &kEager, "13b, T=2048, 8 H100, 2 a GPU", "dgx-h100", kMpt13b,
     "mesh.data=8 mesh.zero=3 train.batch=16 train.total_batch=32768", 38336, 0},
    {&kMpt, &kEager, "30b, T=2048, 32 H100, 14 a GPU, all again", "dgx-h100", kMpt30b,
     R"(mesh.data=32 mesh.zero=3 train.batch=448 train.total_batch=2752512 compile.recompute="full")", 73860, 0},
    {&kFlashReadme, &kFlash1, "125M, 8 A100", "dgx-a100",
     "model.layers=12 model.heads=12 model.width=768 model.context=2048 model.vocab=50257",
     "mesh.data=8 train.total_batch=524288", 1310000, 0},
    {&kFlashReadme, &kFlash1, "355M, 8 A100", "dgx-a100",
     "model.layers=24 model.heads=16 model.width=1024 model.context=2048 model.vocab=50257",
     "mesh.data=8 train.total_batch=524288", 503000, 0},
    {&kFlashReadme, &kFlash1, "760M, 8 A100", "dgx-a100",
     "model.layers=24 model.heads=16 model.width=1536 model.context=2048 model.vocab=50257",
     "mesh.data=8 train.total_batch=524288", 245000, 0},
    {&kFlashReadme, &kFlash1, "1.3B, 8 A100", "dgx-a100",
     "model.layers=24 model.heads=16 model.width=2048 model.context=2048 model.vocab=50257",
     "mesh.data=8 train.total_batch=1048576", 169000, 0},
    {&kFlashReadme, &kFlash1, "2.7B, 8 A100", "dgx-a100",
     "model.layers=32 model.heads=20 model.width=2560 model.context=2048 model.vocab=50257",
     "mesh.data=8 train.total_batch=1048576", 85000, 0},
    {&kLlmC, &kFused, "124M, 8 A100", "dgx-a100", R"(model.preset="gpt2-124m")",
     "mesh.data=8 mesh.zero=1 train.batch=512 train.total_batch=524288", 0, 0.3},
    {&kLlmC, &kFused, "774M, 8 A100", "dgx-a100", R"(model.preset="gpt2-774m")",
     "mesh.data=8 mesh.zero=1 train.batch=256 train.total_batch=524288", 0, 1.7},
    {&kLlmC, &kFused, "1558M, 8 H100", "dgx-h100", R"(model.preset="gpt2-1558m")",
     "mesh.data=8 mesh.zero=1 train.batch=128 train.total_batch=1048576", 0, 2.75},
    {&kPax, &kFused, "175B, 256 A100, 6 a GPU, all again", "dgx-a100",
     "model.layers=96 model.heads=96 model.width=12288 model.context=2048 model.vocab=50304",
     R"(mesh.data=256 mesh.zero=3 train.batch=1536 train.total_batch=3145728 compile.recompute="full")", 19.62 * 2048,
     0},
    {&kPax, &kFused, "5B, 256 A100, 8 a GPU", "dgx-a100", kGpt5b,
     R"(mesh.data=256 mesh.zero=3 train.batch=2048 train.total_batch=4194304 compile.recompute="selective")",
     598.83 * 2048, 0, kUnsure},
    {&kTorchtitan,
     &kTitan,
     "Llama 3.1 8B, 8 H100, 2 a GPU",
     "grand-teton",
     kLlama8b,
     R"(mesh.data=8 mesh.zero=3 train.batch=16 train.total_batch=131072 compile.recompute="selective")",
     6667 * 8.0,
     0,
     {},
     kEverySecond},
    {&kTorchtitan,
     &kTitan,
     "Llama 3.1 8B, 128 H100, 2 a GPU",
     "grand-teton",
     kLlama8b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=2097152 compile.recompute="selective")",
     6514 * 128.0,
     0,
     {},
     kEverySecond},
    {&kTorchtitan,
     &kTitan,
     "Llama 3.1 8B, 64 H100: t 8, 12 a rank",
     "grand-teton",
     kLlama8b,
     R"(mesh.data=8 mesh.tensor=8 mesh.zero=3 train.batch=96 train.total_batch=786432 compile.recompute="selective")",
     4809.4 * 64,
     0,
     {},
     kEverySecond},
    {&kTorchtitan, &kTitan, "Llama 3.1 70B, 256 H100: t 8, 16 a rank", "grand-teton", kLlama70b,
     R"(mesh.data=32 mesh.tensor=8 mesh.zero=3 train.batch=512 train.total_batch=4194304 compile.recompute="full")",
     652.4 * 256, 0},
    {&kTorchtitan,
     &kEager2,
     "Llama 3.1 8B, 8 H100, 2 a GPU, eager",
     "grand-teton",
     kLlama8b,
     R"(mesh.data=8 mesh.zero=3 train.batch=16 train.total_batch=131072 compile.recompute="selective")",
     5762 * 8.0,
     0,
     {},
     kEverySecondEager},
    {&kTorchtitan,
     &kEager2,
     "Llama 3.1 8B, 128 H100, 2 a GPU, eager",
     "grand-teton",
     kLlama8b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=2097152 compile.recompute="selective")",
     5605 * 128.0,
     0,
     {},
     kEverySecondEager},
    {&kTorchtitan,
     &kEager2,
     "Llama 3 8B, 64 A100, 1 a GPU",
     "dgx-a100",
     kLlama8b,
     R"(mesh.data=64 mesh.zero=3 train.batch=64 train.total_batch=524288 compile.recompute="selective")",
     2973 * 64.0,
     0,
     {},
     kEverySecondEager},
    {&kTorchtitan, &kEager2, "Llama 3 70B, 64 A100, 1 a GPU", "dgx-a100", kLlama70b,
     R"(mesh.data=64 mesh.zero=3 train.batch=64 train.total_batch=524288 compile.recompute="full")", 331 * 64.0, 0},
    {&kTorchtitan, &kEager2, "Llama 2 13B, 64 A100, 2 a GPU", "dgx-a100", kLlama13b,
     R"(mesh.data=64 mesh.zero=3 train.batch=128 train.total_batch=524288 compile.recompute="selective")", 2162 * 64.0,
     0},
    {&kTorchtitan, &kEager2, "Llama 2 70B, 64 A100, 2 a GPU", "dgx-a100", kLlama70b2,
     R"(mesh.data=64 mesh.zero=3 train.batch=128 train.total_batch=524288 compile.recompute="full")", 353 * 64.0, 0},
    {&kFms, &kCompiled, "Llama 2 7B, 128 A100", "vela-a100", kLlama7b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="selective")",
     4550 * 128.0, 0, kHybrid},
    {&kFms, &kCompiled, "Llama 2 7B, 96 H100", "vela-h100", kLlama7b,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="selective")", 9600 * 96.0,
     0, kHybrid},
    {&kFms,
     &kCompiled,
     "Llama 2 13B, 128 A100",
     "vela-a100",
     kLlama13b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="selective")",
     2150 * 128.0,
     0,
     {},
     again_of_blocks(0.39, kOurLlamaForward)},
    {&kFms,
     &kCompiled,
     "Llama 2 13B, 96 H100",
     "vela-h100",
     kLlama13b,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="selective")",
     4850 * 96.0,
     0,
     {},
     again_of_blocks(0.21, kOurLlamaForward)},
    {&kFms, &kCompiled, "Llama 2 34B, 128 A100", "vela-a100", kLlama34b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="full")", 820 * 128.0, 0},
    {&kFms,
     &kCompiled,
     "Llama 2 34B, 96 H100",
     "vela-h100",
     kLlama34b,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="selective")",
     1830 * 96.0,
     0,
     {},
     again_of_blocks(0.87, kOurLlamaForward)},
    {&kFms, &kCompiled, "Llama 2 70B, 128 A100", "vela-a100", kLlama70b2,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="full")", 410 * 128.0, 0},
    {&kFms,
     &kCompiled,
     "Llama 2 70B, 96 H100",
     "vela-h100",
     kLlama70b2,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="selective")",
     890 * 96.0,
     0,
     {},
     again_of_blocks(0.71, kOurLlamaForward)},
    {&kFms, &kEager2, "Llama 2 7B, 128 A100, eager", "vela-a100", kLlama7b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="selective")",
     3700 * 128.0, 0, kHybrid},
    {&kFms, &kEager2, "Llama 2 7B, 96 H100, eager", "vela-h100", kLlama7b,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="selective")", 7500 * 96.0,
     0, kHybrid},
    {&kFms,
     &kEager2,
     "Llama 2 13B, 128 A100, eager",
     "vela-a100",
     kLlama13b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="selective")",
     1800 * 128.0,
     0,
     {},
     again_of_blocks(0.47, kEagerLlamaForward)},
    {&kFms,
     &kEager2,
     "Llama 2 13B, 96 H100, eager",
     "vela-h100",
     kLlama13b,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="selective")",
     3800 * 96.0,
     0,
     {},
     again_of_blocks(0.43, kEagerLlamaForward)},
    {&kFms, &kEager2, "Llama 2 34B, 128 A100, eager", "vela-a100", kLlama34b,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="full")", 700 * 128.0, 0},
    {&kFms, &kEager2, "Llama 2 34B, 96 H100, eager", "vela-h100", kLlama34b,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="full")", 1550 * 96.0, 0},
    {&kFms, &kEager2, "Llama 2 70B, 128 A100, eager", "vela-a100", kLlama70b2,
     R"(mesh.data=128 mesh.zero=3 train.batch=256 train.total_batch=1048576 compile.recompute="full")", 370 * 128.0, 0},
    {&kFms, &kEager2, "Llama 2 70B, 96 H100, eager", "vela-h100", kLlama70b2,
     R"(mesh.data=96 mesh.zero=3 train.batch=192 train.total_batch=786432 compile.recompute="full")", 800 * 96.0, 0},
    {&kMegatron2024, &kMegatron, "1.7B, 48 H100: t 1, p 1", "dgx-h100",
     "model.layers=24 model.heads=16 model.width=2048 model.context=4096 model.vocab=131072 model.tie_weights=false",
     "mesh.tensor=1 mesh.pipe=1 mesh.data=48 mesh.zero=1 train.total_batch=786432", 0, 0.4519},
    {&kMegatron2024, &kMegatron, "7.1B, 96 H100: t 2, p 1", "dgx-h100",
     "model.layers=30 model.heads=32 model.width=4096 model.context=4096 model.vocab=131072 model.tie_weights=false",
     "mesh.tensor=2 mesh.pipe=1 mesh.data=48 mesh.zero=1 train.total_batch=786432", 0, 0.8},
    {&kMegatron2024, &kMegatron, "119B, 1536 H100: t 8, p 4", "dgx-h100",
     "model.layers=92 model.heads=80 model.width=10240 model.context=4096 model.vocab=131072 model.tie_weights=false",
     "mesh.tensor=8 mesh.pipe=4 mesh.data=48 mesh.zero=1 train.total_batch=3145728", 0, 3.6476},
    {&kMegatron2024, &kMegatron, "177B, 2304 H100: t 8, p 6", "dgx-h100",
     "model.layers=96 model.heads=96 model.width=12288 model.context=4096 model.vocab=131072 model.tie_weights=false",
     "mesh.tensor=8 mesh.pipe=6 mesh.data=48 mesh.zero=1 train.total_batch=4718592", 0, 5.2588},
    {&kMegatron2024, &kMegatron, "314B, 3072 H100: t 8, p 8", "dgx-h100",
     "model.layers=96 model.heads=128 model.width=16384 model.context=4096 model.vocab=131072 model.tie_weights=false",
     "mesh.tensor=8 mesh.pipe=8 mesh.data=48 mesh.zero=1 train.total_batch=6291456", 0, 8.3993},
    {&kMegatron2024, &kMegatron, "462B, 6144 H100: t 8, p 16", "dgx-h100",
     "model.layers=112 model.heads=144 model.width=18432 model.context=4096 model.vocab=131072 model.tie_weights=false",
     "mesh.tensor=8 mesh.pipe=16 mesh.data=48 mesh.zero=1 train.total_batch=12582912", 0, 12.7165},
    {&kZeroBubble, &kMegatron, "1.5B, 8 A100, 6 x 24, 1f1b", "dgx-a100", kZeroBubble1b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="1f1b" train.batch=6 train.total_batch=147456)", 0, 1.5254},
    {&kZeroBubble, &kMegatron, "1.5B, 8 A100, 6 x 24, zero_bubble", "dgx-a100", kZeroBubble1b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="zero_bubble" train.batch=6 train.total_batch=147456)", 0, 1.3953},
    {&kZeroBubble, &kMegatron, "1.5B, 8 A100, 6 x 64, 1f1b", "dgx-a100", kZeroBubble1b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="1f1b" train.batch=6 train.total_batch=393216)", 0, 3.5294},
    {&kZeroBubble, &kMegatron, "1.5B, 8 A100, 6 x 64, zero_bubble", "dgx-a100", kZeroBubble1b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="zero_bubble" train.batch=6 train.total_batch=393216)", 0, 3.3803},
    {&kZeroBubble, &kMegatron, "6.2B, 8 A100, 3 x 24, 1f1b", "dgx-a100", kZeroBubble6b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="1f1b" train.batch=3 train.total_batch=73728)", 0, 2.5714},
    {&kZeroBubble, &kMegatron, "6.2B, 8 A100, 3 x 24, zero_bubble", "dgx-a100", kZeroBubble6b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="zero_bubble" train.batch=3 train.total_batch=73728)", 0, 2.3196},
    {&kZeroBubble, &kMegatron, "6.2B, 8 A100, 3 x 64, 1f1b", "dgx-a100", kZeroBubble6b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="1f1b" train.batch=3 train.total_batch=196608)", 0, 5.9553},
    {&kZeroBubble, &kMegatron, "6.2B, 8 A100, 3 x 64, zero_bubble", "dgx-a100", kZeroBubble6b,
     R"(mesh.pipe=8 mesh.data=1 mesh.schedule="zero_bubble" train.batch=3 train.total_batch=196608)", 0, 5.7143},
    {&kZeroBubble, &kMegatron, "14.6B, 16 A100, 1 x 48, 1f1b", "dgx-a100", kZeroBubble14b,
     R"(mesh.pipe=16 mesh.data=1 mesh.schedule="1f1b" train.batch=1 train.total_batch=49152)", 0, 2.1429},
    {&kZeroBubble, &kMegatron, "14.6B, 16 A100, 1 x 48, zero_bubble", "dgx-a100", kZeroBubble14b,
     R"(mesh.pipe=16 mesh.data=1 mesh.schedule="zero_bubble" train.batch=1 train.total_batch=49152)", 0, 1.8634},
    {&kZeroBubble, &kMegatron, "14.6B, 16 A100, 1 x 128, 1f1b", "dgx-a100", kZeroBubble14b,
     R"(mesh.pipe=16 mesh.data=1 mesh.schedule="1f1b" train.batch=1 train.total_batch=131072)", 0, 4.878},
    {&kZeroBubble, &kMegatron, "14.6B, 16 A100, 1 x 128, zero_bubble", "dgx-a100", kZeroBubble14b,
     R"(mesh.pipe=16 mesh.data=1 mesh.schedule="zero_bubble" train.batch=1 train.total_batch=131072)", 0, 4.5455},
    {&kZeroBubble, &kMegatron, "28.3B, 32 A100, 1 x 96, 1f1b", "dgx-a100", kZeroBubble28b,
     R"(mesh.pipe=32 mesh.data=1 mesh.schedule="1f1b" train.batch=1 train.total_batch=98304)", 0, 3.9474},
    {&kZeroBubble, &kMegatron, "28.3B, 32 A100, 1 x 96, zero_bubble", "dgx-a100", kZeroBubble28b,
     R"(mesh.pipe=32 mesh.data=1 mesh.schedule="zero_bubble" train.batch=1 train.total_batch=98304)", 0, 3.4483},
    {&kZeroBubble, &kMegatron, "28.3B, 32 A100, 1 x 256, 1f1b", "dgx-a100", kZeroBubble28b,
     R"(mesh.pipe=32 mesh.data=1 mesh.schedule="1f1b" train.batch=1 train.total_batch=262144)", 0, 9.0909},
    {&kZeroBubble, &kMegatron, "28.3B, 32 A100, 1 x 256, zero_bubble", "dgx-a100", kZeroBubble28b,
     R"(mesh.pipe=32 mesh.data=1 mesh.schedule="zero_bubble" train.batch=1 train.total_batch=262144)", 0, 8.3333},
    {&kBloom, &kMatrices, "181B, 384 A100: d 12, t 8, p 4, 2 a rank", "jean-zay", kBloom181b,
     R"(mesh.data=12 mesh.tensor=8 mesh.pipe=4 mesh.zero=1 mesh.schedule="1f1b" train.batch=24 train.total_batch=4128768 compile.recompute="full")",
     0, 125.52},
    {&kBloom, &kMatrices, "181B, 384 A100: d 8, t 4, p 12, 2 a rank", "jean-zay", kBloom181b,
     R"(mesh.data=8 mesh.tensor=4 mesh.pipe=12 mesh.zero=1 mesh.schedule="1f1b" train.batch=16 train.total_batch=4194304 compile.recompute="full")",
     0, 110.48},
    {&kBloom, &kMatrices, "181B, 384 A100: d 8, t 8, p 6, 4 a rank", "jean-zay", kBloom181b,
     R"(mesh.data=8 mesh.tensor=8 mesh.pipe=6 mesh.zero=1 mesh.schedule="1f1b" train.batch=32 train.total_batch=4194304 compile.recompute="full")",
     0, 114.11},
    {&kBloom, &kMatrices, "181B, 384 A100: d 16, t 2, p 12, 2 a rank", "jean-zay", kBloom181b,
     R"(mesh.data=16 mesh.tensor=2 mesh.pipe=12 mesh.zero=1 mesh.schedule="1f1b" train.batch=32 train.total_batch=4194304 compile.recompute="full")",
     0, 112.5},
    {&kBloom, &kMatrices, "181B, 384 A100: d 4, t 8, p 12, 4 a rank", "jean-zay", kBloom181b,
     R"(mesh.data=4 mesh.tensor=8 mesh.pipe=12 mesh.zero=1 mesh.schedule="1f1b" train.batch=16 train.total_batch=4194304 compile.recompute="full")",
     0, 117.07},
    {&kBloom, &kMatrices, "181B, 384 A100: d 6, t 8, p 8, 4 a rank", "jean-zay", kBloom181b,
     R"(mesh.data=6 mesh.tensor=8 mesh.pipe=8 mesh.zero=1 mesh.schedule="1f1b" train.batch=24 train.total_batch=4128768 compile.recompute="full")",
     0, 113.16},
    {&kKorthikanti, &kMatrices, "22B, 8 A100: t 8", "dgx-a100",
     "model.layers=48 model.heads=64 model.width=6144 model.context=2048 model.vocab=51200",
     R"(mesh.tensor=8 mesh.data=1 train.batch=4 train.total_batch=8192 compile.recompute="selective")", 0, 1.1},
    {&kKorthikanti, &kMatrices, "1T, 512 A100: t 8, p 64", "dgx-a100",
     "model.layers=128 model.heads=160 model.width=25600 model.context=2048 model.vocab=51200",
     R"(mesh.tensor=8 mesh.pipe=64 mesh.data=1 mesh.schedule="1f1b" train.batch=1 train.total_batch=1048576 compile.recompute="selective")",
     0, 71.49},
    {&kNemo, &kMatrices, "5B, 160 A100", "dgx-a100", kGpt5b,
     R"(mesh.data=160 mesh.zero=1 train.total_batch=2949120 compile.recompute="selective")", 726384, 0},
    {&kNanoGpt, &kMatrices, "124M, 8 A100, 12 x 5", "dgx-a100", R"(model.preset="gpt2-124m" model.bias=false)",
     "mesh.data=8 train.batch=96 train.total_batch=491520", 0, 0.562},
};

}  // namespace

std::span<const PublishedRun> published_runs() { return kRuns; }

ClusterConfig published_cluster(std::string_view name) {
  if (name == "jean-zay") {
    ClusterConfig cluster = read_cluster("dgx-a100");
    cluster.between.bandwidth = {5e9, "80% of 4 x 100 Gb/s of Omni-Path a node, over 8 GPUs (BLOOM, arXiv 2211.05100)"};
    return cluster;
  }
  if (name == "vela-a100" || name == "vela-h100") {
    ClusterConfig cluster = read_cluster(name == "vela-a100" ? "dgx-a100" : "dgx-h100");
    double line = name == "vela-a100" ? 400e9 : 800e9;
    cluster.between.bandwidth = {0.8 * line / 8 / 8, "80% of 400 or 800 Gb/s a node, over 8 GPUs (fms-fsdp)"};
    return cluster;
  }
  if (name == "a100-40-roce") {
    ClusterConfig cluster = read_cluster("dgx-a100");
    cluster.gpu = gpu_model("a100-40gb");
    return cluster;
  }
  if (name == "grand-teton") {  // by its source: HBM2e, 2.4 TB/s, 500 W; a clock goes with the cube root of power
    ClusterConfig cluster = read_cluster("dgx-h100");
    cluster.gpu.memory_bytes = {95e9, "96 GB"};
    cluster.gpu.memory_bandwidth = {2.4e12, "2.4 TB/s"};
    cluster.gpu.load_clock = {load_clock(cluster.gpu) * std::cbrt(500.0 / 700), "500 of 700 W"};
    return cluster;
  }
  return read_cluster(std::string(name));
}

}  // namespace tokamak
