// How a step is divided over devices: docs/parallel.md.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

struct MeshConfig {
  int64_t pipe = 1;          // stages of a pipeline that the layers are divided into
  int64_t data = 0;          // ranks that the batch is divided over; 0: what the others leave
  int64_t context = 1;       // ranks that each sequence is divided over
  int64_t tensor = 1;        // ranks that each matrix is divided over
  bool sequence = true;      // whether tensor ranks divide each sequence where they do not divide matrices
  bool async_tensor = true;  // whether a product of rows that tensor ranks gather begins with the rank's own rows
  int64_t zero = 0;  // what data ranks divide besides the batch: 1 optimizer states, 2 gradient sums, 3 parameters
  int64_t bucket_mib = 50;  // what collectives of gradients and parameters are joined up to, in MiB; 0: none are joined
  // Memory of each axis through which GPUs of one machine copy to each other what they add, gather and pass on to the
  // next stage (backend/cuda/nccl/mailbox.h), in MiB; 0: NCCL's kernels do all.
  int64_t mailbox_mib = 64;
  std::string schedule = "1f1b";  // of the pipeline: one of kPipeSchedules (plan/pipe_schedule.h)
  int64_t interleave = 1;         // chunks of layers that a stage has
  std::string chunk_layers;       // of each chunk, in order, as in "7,8,8,9"; empty: so that stages take alike
  // Equal parts of a step's sequences whose gradients are added in one order on any number of data ranks and stages; a
  // power of two. 0: on several of them as many as data ranks x micro-batches, if that is one; 1: none, sums as is
  // fastest.
  int64_t slots = 0;
  // Without slots and a pipeline: where data ranks add up gradients of several micro-batches, with mesh.zero 0 or 1:
  // beside the backward pass of the `last` one, in the `update`, or `auto`: beside the last where there is no budget of
  // memory and the step is predicted to be faster.
  std::string reduce_gradients = "auto";
  // That a rank may wait for others before it asks where they stand, where steps are short; 0: it never does. See
  // base/hang_watch.h.
  double hang_seconds = 3;
  std::string interface;  // of the network, through which ranks of several machines send; empty: the one to rank 0
};

/// Whether data ranks add gradients up once a step, each the sum of its micro-batches; else, where ZeRO cuts sums of
/// gradients, after each micro-batch.
inline bool adds_gradients_once(int64_t zero) { return zero <= 1; }

inline constexpr const char* kPipeSchedules[] = {"1f1b", "gpipe", "interleaved", "zero_bubble"};

}  // namespace tokamak
