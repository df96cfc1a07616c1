// skytrain/train/saved_state.h
//
// An engine's state and a run's state, to and from checkpoints.

#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/checkpoint/background_save.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/file_image.h"
#include "skytrain/checkpoint/memory_snapshot.h"
#include "skytrain/data/dataset.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/run_generation.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

// Copies a checkpoint's tensors into all that engine.state() names. Throws Error(kData) naming file and tensor:
// damaged, missing, or of another shape; the engine's state may be that of no step then.
checkpoint::Manifest load_engine_state(FileSystem& fs, const std::string& checkpoint_path, Engine& engine);

class SavedState {
 public:
  // directory: <run>/checkpoints. recipe_fingerprint: kept in each manifest.
  // memory: where the last state is kept beside the disk, for a worker that comes after this one; none: nowhere.
  SavedState(FileSystem& fs, Clock& clock, std::string directory, std::string recipe_fingerprint,
             std::optional<checkpoint::MemorySnapshot> memory = {});
  // The training data: a checkpoint of another data set is refused on restore.
  void set_data(const data::DatasetInfo& info);

  struct SaveOptions {
    uint64_t samples = 0;                       // consumed
    int64_t keep = 0;                           // how many of the newest stay; 0: all
    std::function<bool(uint64_t step)> spared;  // others that stay; empty: none
    // Called before the checkpoint counts, on another thread: what it throws is the save's failure.
    std::function<void()> before_commit;
  };
  // Gets the memory for the copy of the state, beside the training, before the first save needs it.
  void prepare(const Engine& engine);
  // Begins to save beside the training. The engine's state must not change before wait_for_snapshot() has returned.
  // REQUIRES: no save is going on.
  void start_save(const Engine& engine, const RunState& state, SaveOptions options);
  // The same into memory only, which costs little. REQUIRES: keeps_memory().
  void start_memory_save(const Engine& engine, const RunState& state, uint64_t samples);
  bool keeps_memory() const { return memory_.has_value(); }
  bool saving_to_memory() const { return saving() && to_memory_; }
  void wait_for_snapshot() { background_.wait_for_snapshot(); }
  bool saving() const { return background_.going_on(); }
  bool save_is_done() const { return background_.done(); }
  uint64_t saving_step() const { return saving_step_; }
  uint64_t image_bytes() const { return image_.file().size(); }  // of the last save
  // Gives the save that is going on up, unless it is done: its failure is an Error(kInterrupted). The same happens when
  // the deadline has come.
  void give_up() { give_up_ = true; }
  // Asked while a save is being written, on another thread: see TrainOptions::deadline.
  void set_deadline(std::function<std::optional<double>()> deadline) { deadline_ = std::move(deadline); }
  // How long the save that is going on will take from now, by its rate so far; none: not known yet.
  std::optional<double> rest_seconds() const;
  // How long writing a whole state takes, by the rate of the save that is going on, else of the last one.
  std::optional<double> whole_seconds() const;
  // Waits for the end of the save, to the disk or to memory. Old checkpoints that can't be removed are no reason to end
  // a run: a line about them goes to `notes`. Throws what commit() throws, and Error(kDiverged) when a weight is not
  // finite: then nothing was written.
  void finish_save(std::vector<std::string>* notes);
  // All of it at once; returns the path.
  std::string save(const Engine& engine, const RunState& state, SaveOptions options, std::vector<std::string>* notes);

  // Loads the newest state into `engine`: what a former worker left in memory when that is newer than all on the disk,
  // else as restore_from_disk(). REQUIRES: no save is going on.
  std::optional<RunState> restore(Engine& engine, std::vector<std::string>* notes);
  // Loads the newest valid checkpoint; nullopt when there is none at all. notes: lines about newer ones that were
  // passed over because they are damaged. Throws Error(kData) when all are damaged, when a newer one is of a later
  // format, or when the newest valid one is of another data set or model; Error(kEnvironment) when a newer one can't be
  // read: going on from an older state would throw work away. A single pass over the file: when it throws, the engine's
  // state may be that of no step, which must be the end of the run.
  std::optional<RunState> restore_from_disk(Engine& engine, std::vector<std::string>* notes);

  // Replaces the run's state in the newest checkpoint, whose tensors stay: for an evaluation that was made later.
  void amend(const RunState& state);

  uint64_t newest_step() const { return newest_step_; }
  uint64_t newest_samples() const { return newest_samples_; }      // consumed
  uint64_t restored_samples() const { return restored_samples_; }  // of the state that restore() gave
  // Of what is saved from here on. REQUIRES: no restore() will follow.
  uint64_t generation() {
    generation_.starts_anew();
    return generation_.number();
  }
  const std::string& newest_path() const { return newest_path_; }

 private:
  checkpoint::Manifest manifest_of(const RunState& state, uint64_t samples) const;
  void start(const Engine& engine, const checkpoint::Manifest& manifest, bool to_memory,
             std::function<std::string()> commit);
  std::optional<RunState> restore_from_memory(Engine& engine);
  void require_same_data(const checkpoint::Manifest& manifest, const std::string& path, const std::string& where) const;
  Json state_json(const RunState& state) const;
  void make_room(const SaveOptions& options);
  void wrote(uint64_t bytes);

  FileSystem& fs_;
  Clock& clock_;
  std::string directory_, recipe_fingerprint_, data_fingerprint_;
  Json data_description_;
  uint64_t newest_step_ = 0, newest_samples_ = 0, saving_step_ = 0, saving_samples_ = 0;
  std::string newest_path_;
  std::string sound_path_;         // of one that was read, or committed, by this process
  uint64_t restored_samples_ = 0;  // consumed, of the state that was loaded last
  RunGeneration generation_;
  std::optional<checkpoint::MemorySnapshot> memory_;
  bool to_memory_ = false;  // the save that is going on
  checkpoint::FileImage image_;
  std::future<void> preparing_;
  std::vector<std::string> notes_;  // of the save that is going on
  // Of the save that is going on, for whoever waits for it.
  std::atomic<uint64_t> written_{0};
  std::atomic<double> writing_since_{0};
  std::atomic<bool> give_up_{false};
  std::function<std::optional<double>()> deadline_;
  std::atomic<double> last_writing_{0};    // seconds that the last one took to write, 0: there was none
  checkpoint::BackgroundSave background_;  // last: its thread uses the others
};

}  // namespace skytrain::train
