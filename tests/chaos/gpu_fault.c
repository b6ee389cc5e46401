// Breaks the GPU of the process that it is loaded into (LD_PRELOAD), on request: bench/faults.py.
//
// A thread waits for the file $TOKAMAK_GPU_FAULT to hold "PID KIND" with this process' number. It then works in the
// context that the program's kernels run in, so that these meet the error as if it were their own:
//   illegal  a kernel writes to an address that nothing has (CUDA_ERROR_ILLEGAL_ADDRESS)
//   trap     a kernel stops with an error (CUDA_ERROR_LAUNCH_FAILED)
//   lost     the context is destroyed under the program: every later call fails, as on a GPU that has left the bus
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void* Handle;
typedef int (*Call)();

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry illegal() {\n.reg .u64 %at;\nmov.u64 %at, 16;\nst.global.u32 [%at], 1;\nret;\n}\n"
    ".visible .entry trapped() {\ntrap;\nret;\n}\n";

static Call find(Handle library, const char* name) {
  Call call = (Call)dlsym(library, name);
  if (!call) fprintf(stderr, "gpu_fault: libcuda.so.1 has no %s\n", name);
  return call;
}

static void launch(Handle library, const char* kernel) {
  Handle module = NULL, function = NULL;
  int status = find(library, "cuModuleLoadData")(&module, kPtx);
  if (!status) status = find(library, "cuModuleGetFunction")(&function, module, kernel);
  if (!status) {
    // cuLaunchKernel(function, grid xyz, block xyz, shared bytes, stream, arguments, extra)
    int (*run)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**) =
        (void*)find(library, "cuLaunchKernel");
    status = run(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  }
  if (status) fprintf(stderr, "gpu_fault: error %d\n", status);
}

static void break_gpu(const char* kind) {
  Handle library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), context = NULL;
  if (!library) {
    fprintf(stderr, "gpu_fault: this process has not opened libcuda.so.1\n");
    return;
  }
  for (int device = 0; device < 16; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (find(library, "cuDevicePrimaryCtxGetState")(device, &flags, &active) || !active) continue;
    if (!strcmp(kind, "lost")) {
      find(library, "cuDevicePrimaryCtxReset_v2")(device);
      continue;
    }
    find(library, "cuDevicePrimaryCtxRetain")(&context, device);
    find(library, "cuCtxSetCurrent")(context);
    launch(library, strcmp(kind, "trap") ? "illegal" : "trapped");
  }
}

static void* wait_for_request(void* path) {
  for (;; usleep(5000)) {
    char kind[16] = "";
    int pid = 0;
    FILE* file = fopen(path, "r");
    if (!file) continue;
    int found = fscanf(file, "%d %15s", &pid, kind);
    fclose(file);
    if (found != 2 || pid != getpid()) continue;
    break_gpu(kind);
    return NULL;
  }
}

__attribute__((constructor)) static void begin(void) {
  char* path = getenv("TOKAMAK_GPU_FAULT");
  pthread_t thread;
  if (path && !pthread_create(&thread, NULL, wait_for_request, path)) pthread_detach(thread);
}
