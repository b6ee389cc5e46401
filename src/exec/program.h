// Binds a Plan to a backend and runs it: allocates the arena once, compiles every kernel once, then launches what the
// plan says in the order it says. Tests: tests/run/streams_test.cpp, and all that run a plan.
#pragma once

#include "backend/backend.h"
#include "exec/chain.h"
#include "exec/tensor_store.h"
#include "exec/work_observer.h"
#include "plan/plan.h"

#include <map>
#include <string>

namespace tokamak {

struct ProgramOptions {
  /// Of a plan for one rank of a mesh; must outlive the program, as the ranks' inputs of the graph come from it.
  const MeshRanks* ranks = nullptr;
  /// Shared by programs that do not run at the same time; null: the program's own.
  std::shared_ptr<Memory> arena;
  /// The second run is recorded where the backend can and the plan is_to_record(), and replayed from then on.
  bool record = false;
  /// Kernels that can begin before those before them have ended (backend/chained.h), where there are enough of them.
  bool chain = false;
  /// States in whose place runs of micro-batches with odd numbers have others of the store; null: none.
  const std::map<std::string, std::string>* odd_states = nullptr;
};

class Program {
 public:
  /// Storage of the inputs is the program's own. `store` and `backend` must outlive the program.
  Program(Plan plan, Backend& backend, TensorStore& store, ProgramOptions options = {});

  const Plan& plan() const { return plan_; }

  /// Copies an input in, of `bytes`; where ranks have shares of it, from all of it.
  void set_input(std::string_view name, const void* from, int64_t bytes);
  /// Whether the program has set the input for good: where its rank stands on the mesh.
  bool is_set(const Argument& input) const;
  /// Scratch memory of the kernels, as they were made; plan().scratch_bytes is what was expected of them.
  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Null: launches wait for those before them.
  const Chain* chain() const { return chain_ ? &*chain_ : nullptr; }
  /// Whether runs are recorded, if the backend can.
  bool records() const { return record_; }
  /// Indices into the graph's nodes: those that no kernel of the backend computes.
  std::vector<int> nodes_by_reference() const;
  /// One run of the plan; of states with several buffers it takes those of the micro-batch. A failing kernel's error
  /// names its node. Streams of the plan that do not end with the run may go on when it is over, and then into the next
  /// run of this program.
  void run(int64_t micro_batch = 0);
  /// Tells it of inputs and runs from now on; null: nobody. It must outlive what it is told of.
  void observe(WorkObserver* observer) { observer_ = observer; }
  /// What a run changes of parameters and states that are kept (not is_scratch) comes after these copies of them, from
  /// the next run on, which is the first that may be recorded. They must outlive the program's runs.
  void change_after(HostCopies& copies) { copies_ = &copies; }
  /// After a run: what is asked for from now on comes after all its streams. To be called before another program
  /// touches what they may touch. (Session has no such plan yet, and refuses one.)
  void end_streams();
  /// A result of the last run.
  void get_result(std::string_view name, void* to, int64_t bytes) const;
  float get_scalar(std::string_view name) const;
  bool has_result(std::string_view name) const;
  /// The same without waiting: the scalar of the last run, whatever runs next.
  std::unique_ptr<Readback> read_scalar(std::string_view name) const;
  /// The same of all of a result.
  std::unique_ptr<Readback> read_result(std::string_view name) const;

  /// How many launches and copies have begun so far that write parameters or states that are kept (not is_scratch).
  /// Where nothing fails, each run adds as many; on a backend with a queue, when it is asked for.
  int64_t changes() const { return changes_; }

  /// The same as run(), with the seconds that each launch took added to `seconds` (by launch).
  void run_timed(std::vector<double>& seconds);

 private:
  struct Bound {
    int node;
    std::unique_ptr<Kernel> kernel;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    int stream = 0;
    bool changes = false;               // what is kept
    std::vector<int> after;             // launches of other streams that come before
    std::vector<int> after_last_run;    // streams whose part of the last run comes before
    std::unique_ptr<StreamEvent> done;  // where a launch of another stream comes after this one
  };

  void bind(const Launch& launch);
  void bind_buffers(int64_t micro_batch);
  bool is_kept(ValueId argument) const;
  void take_addresses(Bound& bound) const;
  std::unique_ptr<Kernel> make_kernel(const Launch& launch);
  void prepare_chain();
  std::unique_ptr<Kernel> make_link(const Node& node, const Chain::Link& link);
  void set_coordinates();
  void make_events();
  void share_workspace(int stream);
  void* address(ValueId value) const;
  ValueId result(std::string_view name, int64_t bytes) const;
  void launch(Bound& bound);
  void await_copies(int stream);
  void launch_all();
  void fork();
  void join();
  int num_streams() const { return int(plan_.streams.size()); }
  void copy_back();

  Plan plan_;
  Backend& backend_;
  const MeshRanks* ranks_;
  std::shared_ptr<Memory> arena_;
  std::optional<Chain> chain_;
  std::unique_ptr<Memory> handed_;                   // the chain's
  std::vector<std::unique_ptr<Memory>> workspaces_;  // by stream
  int64_t workspace_bytes_ = 0;
  std::vector<std::unique_ptr<Memory>> inputs_;
  std::map<ValueId, void*> arguments_;
  std::map<ValueId, std::vector<void*>> buffers_;  // of states that micro-batches have their own of, in turn
  std::vector<Bound> launches_;
  std::unique_ptr<StreamEvent> begin_;             // of a run, when there are several streams
  std::vector<std::unique_ptr<StreamEvent>> end_;  // of its part on each stream; the first's is null
  HostCopies* copies_ = nullptr;                   // null: there are none
  std::vector<bool> awaited_;                      // by stream: whether this run has come to what waits for them
  WorkObserver* observer_ = nullptr;
  bool record_;
  int64_t runs_ = 0;
  int64_t changes_ = 0;
  int64_t period_ = 1;                                      // micro-batches so far apart have the same buffers
  std::map<int64_t, std::unique_ptr<Recording>> recorded_;  // by micro-batch % period_; null: cannot be
};

}  // namespace tokamak
