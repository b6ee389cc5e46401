#include "checkpoint/kept_save.h"

#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/kept_parts.h"
#include "checkpoint/told_errors.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// The header goes with what the first rank has.
KeptPart part_of(const SharedSave& save, int rank, const std::vector<StateSlice>& slices) {
  KeptPart part;
  const std::vector<StateFile>& files = save.files();
  for (size_t file = 0; rank == 0 && file < files.size(); ++file)
    part.ranges.push_back({files[file].name, 0, int64_t(save.layout(file).header.size())});
  for (const StateSlice& slice : slices) {
    const StateFile& file = files[slice.file];
    int64_t size = dtype_bytes(file.tensors[slice.tensor].type.dtype);
    int64_t begin = save.layout(slice.file).begin[slice.tensor];
    for (const PartRun& run : slice.runs)
      part.ranges.push_back({file.name, begin + run.whole * size, run.count * size});
  }
  return part;
}

class KeptSave {
 public:
  KeptSave(std::shared_ptr<SharedSave> save, fs::path folder, int64_t step, const RankMachines& machines,
           Communicator& links, Exchange exchange)
      : save_(std::move(save)), folder_(std::move(folder)), step_(step), machines_(machines), links_(links),
        exchange_(std::move(exchange)) {}

  // The one before is not removed until all have the new one.
  void complete(const std::vector<StateSlice>& slices, const ReadSlice& read) {
    std::vector<std::string> reports = exchange_(save_->write(slices, read));
    require_no_error(step_, reports);
    tell([&] { return copy(slices, read), std::string(); });
    std::string record = tell([&] { return machines_.rank() == 0 ? finish(reports) : std::string(); })[0];
    tell([&] {
      if (machines_.is_first() && machines_.rank() != 0) save_->finish_like(record);
      return std::string();
    });
    if (machines_.is_first()) remove_old_checkpoints(folder_, KeepRule(1), 0);
  }

 private:
  template <typename Work>
  std::vector<std::string> tell(const Work& work) {
    std::vector<std::string> told = exchange_(told_by(work));
    require_no_error(step_, told);
    return told;
  }

  void copy(const std::vector<StateSlice>& slices, const ReadSlice& read) {
    if (machines_.is_first()) write_part_hosts(save_->folder(), machines_.hosts());
    write_part(save_->folder(), machines_.rank(), part_of(*save_, machines_.rank(), slices));
    PeerCopies(links_, machines_)
        .exchange(
            save_->files(), slices, read,
            {.begin = [&](int rank,
                          const auto& theirs) { write_part(save_->folder(), rank, part_of(*save_, rank, theirs)); },
             .place = [&](const StateSlice& slice, int64_t at, auto piece) { save_->place(slice, at, piece); }});
  }

  std::string finish(const std::vector<std::string>& reports) {
    save_->finish(reports, KeepRule(0));
    return read_file(checkpoints_folder(folder_) / checkpoint_name(step_) / kStateFile);
  }

  std::shared_ptr<SharedSave> save_;
  fs::path folder_;
  int64_t step_;
  const RankMachines& machines_;
  Communicator& links_;
  Exchange exchange_;
};

}  // namespace

CompleteSave begin_kept_save(const fs::path& folder, const CheckpointState& state, const TensorStore& store,
                             const RankMachines& machines, Communicator& links, Exchange exchange) {
  std::shared_ptr<SharedSave> save = SharedSave::begin(folder, state, store, exchange, machines.first());
  if (!save) return {};
  auto kept = std::make_shared<KeptSave>(save, folder, state.step, machines, links, std::move(exchange));
  return [kept](const std::vector<StateSlice>& slices, const ReadSlice& read) { kept->complete(slices, read); };
}

}  // namespace tokamak
