#include "skytrain/train/saved_state.h"

#include <limits>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/train/data_description.h"
#include "skytrain/train/state_snapshot.h"

namespace skytrain::train {
namespace {

// Of a checkpoint beside its tensors: the manifest, and what the file system takes for itself.
constexpr uint64_t kRoomForTheRest = 128 << 10;

}  // namespace

checkpoint::Manifest load_engine_state(FileSystem& fs, const std::string& checkpoint_path, Engine& engine) {
  const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, checkpoint_path);
  if (manifest.files.size() != 1)
    throw Error(ErrorKind::kData, checkpoint_path + "/manifest.json", "lists more than one file of replicated state");
  const checkpoint::LoadedFile file = checkpoint::load_file(fs, checkpoint_path, manifest.files[0]);
  for (const tensor::NamedTensor& item : engine.state()) {
    try {
      tensor::copy_from(file, item.name, item.tensor);
    } catch (const Error& error) {
      throw Error(error.kind(), checkpoint_path + ": " + error.where(), error.problem(), error.hint());
    }
  }
  engine.state_restored();
  return manifest;
}

SavedState::SavedState(FileSystem& fs, Clock& clock, std::string directory, std::string recipe_fingerprint)
    : fs_(fs), clock_(clock), directory_(std::move(directory)), recipe_fingerprint_(std::move(recipe_fingerprint)) {}

void SavedState::set_data(const data::DatasetInfo& info) {
  data_fingerprint_ = info.fingerprint;
  data_description_ = describe_data(info);
}

Json SavedState::state_json(const RunState& state) const {
  return {{"run", state.to_json()},
          {"recipe_fingerprint", recipe_fingerprint_},
          {"data_fingerprint", data_fingerprint_},
          {"data", data_description_}};
}

void SavedState::amend(const RunState& state) {
  if (newest_path_.empty() || newest_step_ != state.step) return;
  checkpoint::amend_state(fs_, newest_path_, state_json(state));
}

void SavedState::start_save(const Engine& engine, const RunState& state, SaveOptions options) {
  checkpoint::Manifest manifest;
  manifest.step = state.step;
  manifest.samples = options.samples;
  manifest.created_unix_seconds = clock_.unix_seconds();
  manifest.state = state_json(state);
  saving_step_ = state.step;
  notes_.clear();
  if (preparing_.valid()) preparing_.get();
  std::vector<tensor::NamedTensor> tensors = engine.state();
  std::vector<ArrayToCheck> to_check = arrays_to_check(tensors, engine);
  background_.start(
      [this, tensors = std::move(tensors), step = state.step] { copy_state(tensors, step, image_); },
      [this, manifest = std::move(manifest), options = std::move(options), to_check = std::move(to_check)] {
        if (const std::string name = not_finite(to_check, image_); !name.empty())
          throw Error(ErrorKind::kDiverged, "",
                      str("a weight became NaN or infinite in step ", manifest.step, ": ", name));
        if (options.before_commit) options.before_commit();
        make_room(options);
        std::string path = checkpoint::commit_image(fs_, directory_, manifest, image_.file());
        if (options.keep == 0) return path;
        try {
          checkpoint::prune(fs_, directory_, {.keep = options.keep, .spared = options.spared, .sound = path});
        } catch (const Error& error) {
          notes_.push_back("old checkpoints could not be removed: " + error.message());
        }
        return path;
      });
}

void SavedState::prepare(const Engine& engine) {
  lay_out_state(engine.state(), std::numeric_limits<uint64_t>::max(), image_);
  preparing_ = std::async(std::launch::async, [this] { image_.touch(); });
}

// A disk that is nearly full gets the new checkpoint in place of older ones.
void SavedState::make_room(const SaveOptions& options) {
  const uint64_t needed = image_.file().size() + kRoomForTheRest;
  if (!fs_.exists(directory_) || fs_.free_bytes(directory_) >= needed) return;
  if (options.keep > 1) {
    const std::vector<std::string> removed =
        checkpoint::prune(fs_, directory_, {.keep = 1, .spared = options.spared, .sound = newest_path_});
    if (!removed.empty())
      notes_.push_back(str("the disk is nearly full: ", removed.size(), " older checkpoint",
                           removed.size() == 1 ? " was" : "s were", " removed to make room"));
  }
  const uint64_t free = fs_.free_bytes(directory_);
  if (free < needed)
    throw Error(ErrorKind::kEnvironment, directory_,
                str("No space left on device: a checkpoint needs ", human_bytes(double(needed)), ", and ",
                    human_bytes(double(free)), " are free"),
                "make room; checkpoints that are there stay");
}

void SavedState::finish_save(std::vector<std::string>* notes) {
  checkpoint::BackgroundSave::Outcome outcome = background_.take();
  if (notes != nullptr) notes->insert(notes->end(), notes_.begin(), notes_.end());
  if (outcome.failure) std::rethrow_exception(outcome.failure);
  newest_path_ = std::move(outcome.path);
  newest_step_ = saving_step_;
}

std::string SavedState::save(const Engine& engine, const RunState& state, SaveOptions options,
                             std::vector<std::string>* notes) {
  start_save(engine, state, std::move(options));
  finish_save(notes);
  return newest_path_;
}

std::optional<RunState> SavedState::restore(Engine& engine, std::vector<std::string>* notes) {
  if (!fs_.exists(directory_)) return std::nullopt;
  std::vector<checkpoint::Candidate> skipped;
  const std::optional<checkpoint::Candidate> found = checkpoint::find_newest_valid(fs_, directory_, &skipped);
  for (const checkpoint::Candidate& candidate : skipped)
    notes->push_back(str("passed over ", candidate.path, ": ", candidate.reason));
  using Trouble = checkpoint::Candidate::Trouble;
  for (const checkpoint::Candidate& candidate : skipped) {
    if (candidate.trouble == Trouble::kTooNew || candidate.trouble == Trouble::kUnreadable)
      throw Error(candidate.trouble == Trouble::kTooNew ? ErrorKind::kData : ErrorKind::kEnvironment, candidate.path,
                  candidate.reason, "make it readable for this program, or move it away to go on from an older one");
  }
  if (!found) {
    for (const checkpoint::Candidate& candidate : skipped) {
      if (candidate.trouble == Trouble::kDamaged)
        throw Error(ErrorKind::kData, candidate.path, candidate.reason,
                    "no older checkpoint is valid either: train again from the beginning with --resume never");
    }
    return std::nullopt;
  }

  checkpoint::Manifest manifest = checkpoint::read_manifest(fs_, found->path);
  const std::string where = found->path + "/manifest.json";
  if (!manifest.state.is_object() || !manifest.state.contains("run"))
    throw Error(ErrorKind::kData, where, "has no state of a training run");
  if (!manifest.state.contains("data_fingerprint") || manifest.state["data_fingerprint"] != data_fingerprint_)
    throw Error(ErrorKind::kData, found->path, "was trained on other data than data.train holds now",
                "put the data back, or start again with --resume never");
  manifest = load_engine_state(fs_, found->path, engine);
  newest_step_ = manifest.step;
  newest_path_ = found->path;
  return RunState::from_json(manifest.state.at("run"), manifest.step, where);
}

}  // namespace skytrain::train
