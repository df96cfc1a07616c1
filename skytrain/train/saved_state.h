// skytrain/train/saved_state.h
//
// An engine's state and a run's state, to and from checkpoints.

#pragma once
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
#include "skytrain/data/dataset.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

// Copies a checkpoint's tensors into all that engine.state() names. Throws Error(kData) naming file and tensor:
// damaged, missing, or of another shape.
checkpoint::Manifest load_engine_state(FileSystem& fs, const std::string& checkpoint_path, Engine& engine);

class SavedState {
 public:
  // directory: <run>/checkpoints. recipe_fingerprint: kept in each manifest.
  SavedState(FileSystem& fs, Clock& clock, std::string directory, std::string recipe_fingerprint);
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
  void wait_for_snapshot() { background_.wait_for_snapshot(); }
  bool saving() const { return background_.going_on(); }
  bool save_is_done() const { return background_.done(); }
  uint64_t saving_step() const { return saving_step_; }
  uint64_t image_bytes() const { return image_.file().size(); }  // of the last save
  // Waits for the end of the save. Old checkpoints that can't be removed are no reason to end a run: a line about them
  // goes to `notes`. Throws what commit() throws, and Error(kDiverged) when a weight is not finite: then nothing was
  // written.
  void finish_save(std::vector<std::string>* notes);
  // All of it at once; returns the path.
  std::string save(const Engine& engine, const RunState& state, SaveOptions options, std::vector<std::string>* notes);

  // Loads the newest valid checkpoint into `engine`; nullopt when there is none at all. notes: lines about newer ones
  // that were passed over because they are damaged. Throws Error(kData) when all are damaged, when a newer one is of a
  // later format, or when the newest valid one is of another data set or model; Error(kEnvironment) when a newer one
  // can't be read: going on from an older state would throw work away.
  std::optional<RunState> restore(Engine& engine, std::vector<std::string>* notes);

  // Replaces the run's state in the newest checkpoint, whose tensors stay: for an evaluation that was made later.
  void amend(const RunState& state);

  uint64_t newest_step() const { return newest_step_; }
  const std::string& newest_path() const { return newest_path_; }

 private:
  Json state_json(const RunState& state) const;
  void make_room(const SaveOptions& options);

  FileSystem& fs_;
  Clock& clock_;
  std::string directory_, recipe_fingerprint_, data_fingerprint_;
  Json data_description_;
  uint64_t newest_step_ = 0, saving_step_ = 0;
  std::string newest_path_;
  checkpoint::FileImage image_;
  std::future<void> preparing_;
  std::vector<std::string> notes_;         // of the save that is going on
  checkpoint::BackgroundSave background_;  // last: its thread uses the others
};

}  // namespace skytrain::train
