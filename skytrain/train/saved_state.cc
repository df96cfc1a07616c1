#include "skytrain/train/saved_state.h"

#include <algorithm>
#include <limits>
#include <map>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/load.h"
#include "skytrain/train/data_description.h"
#include "skytrain/train/state_snapshot.h"

namespace skytrain::train {
namespace {

// Of a checkpoint beside its tensors: the manifest, and what the file system takes for itself.
constexpr uint64_t kRoomForTheRest = 128 << 10;

// All that engine.state() names.
std::map<std::string, checkpoint::Destination> destinations_in(const Engine& engine,
                                                               const checkpoint::TensorFile& file) {
  if (file.manifest.files.size() != 1)
    throw Error(ErrorKind::kData, file.checkpoint_path + "/manifest.json",
                "lists more than one file of replicated state");
  std::map<std::string, checkpoint::Destination> destinations;
  for (const tensor::NamedTensor& item : engine.state()) {
    const checkpoint::ArrayInfo& array = checkpoint::array_of(file.header, item.name, file.path);
    try {
      destinations[item.name] = tensor::destination_in(item.name, array, item.tensor);
    } catch (const Error& error) {
      throw Error(error.kind(), file.checkpoint_path + ": " + error.where(), error.problem(), error.hint());
    }
  }
  return destinations;
}

}  // namespace

checkpoint::Manifest load_engine_state(FileSystem& fs, const std::string& checkpoint_path, Engine& engine) {
  checkpoint::Manifest manifest = checkpoint::load(
      fs, checkpoint_path, [&](const checkpoint::TensorFile& file) { return destinations_in(engine, file); });
  engine.state_restored();
  return manifest;
}

SavedState::SavedState(FileSystem& fs, Clock& clock, std::string directory, std::string recipe_fingerprint,
                       std::optional<checkpoint::MemorySnapshot> memory)
    : fs_(fs),
      clock_(clock),
      directory_(std::move(directory)),
      recipe_fingerprint_(std::move(recipe_fingerprint)),
      generation_(fs, clock, directory_),
      memory_(memory),
      image_(memory ? memory->image() : -1) {}

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

checkpoint::Manifest SavedState::manifest_of(const RunState& state, uint64_t samples) const {
  checkpoint::Manifest manifest;
  manifest.generation = generation_.number();
  manifest.step = state.step;
  manifest.samples = samples;
  manifest.created_unix_seconds = clock_.unix_seconds();
  manifest.state = state_json(state);
  return manifest;
}

void SavedState::start(const Engine& engine, const checkpoint::Manifest& manifest, bool to_memory,
                       std::function<std::string()> commit) {
  to_memory_ = to_memory;
  saving_step_ = manifest.step;
  saving_samples_ = manifest.samples;
  notes_.clear();
  written_ = 0;
  writing_since_ = 0;
  give_up_ = false;
  if (preparing_.valid()) preparing_.get();
  std::vector<tensor::NamedTensor> tensors = engine.state();
  std::vector<ArrayToCheck> to_check = arrays_to_check(tensors, engine);
  background_.start(
      [this, tensors = std::move(tensors), step = manifest.step] {
        if (memory_) memory_->forget();
        copy_state(tensors, step, image_);
      },
      [this, step = manifest.step, to_check = std::move(to_check), commit = std::move(commit)] {
        if (const std::string name = not_finite(to_check, image_); !name.empty())
          throw Error(ErrorKind::kDiverged, "", str("a weight became NaN or infinite in step ", step, ": ", name));
        return commit();
      });
}

void SavedState::start_save(const Engine& engine, const RunState& state, SaveOptions options) {
  generation_.starts_anew();
  checkpoint::Manifest manifest = manifest_of(state, options.samples);
  start(engine, manifest, /*to_memory=*/false, [this, manifest, options = std::move(options)] {
    if (options.before_commit) options.before_commit();
    generation_.enter();
    make_room(options);
    checkpoint::WriteHooks hooks;
    hooks.progress = [this](uint64_t bytes) { wrote(bytes); };
    if (memory_) hooks.hashed = [this](const checkpoint::Manifest& whole) { memory_->publish(whole); };
    writing_since_ = clock_.monotonic_seconds();
    std::string path = checkpoint::commit_image(fs_, directory_, manifest, image_.file(), hooks);
    last_writing_ = clock_.monotonic_seconds() - writing_since_;
    if (options.keep == 0) return path;
    try {
      checkpoint::prune(fs_, directory_, {.keep = options.keep, .spared = options.spared, .sound = path});
    } catch (const Error& error) {
      notes_.push_back("old checkpoints could not be removed: " + error.message());
    }
    return path;
  });
}

void SavedState::start_memory_save(const Engine& engine, const RunState& state, uint64_t samples) {
  generation_.starts_anew();
  checkpoint::Manifest manifest = manifest_of(state, samples);
  start(engine, manifest, /*to_memory=*/true, [this, manifest]() mutable {
    manifest.files = {checkpoint::describe_image(image_.file())};
    memory_->publish(manifest);
    return std::string();
  });
}

void SavedState::prepare(const Engine& engine) {
  reserve_for_state(engine.state(), image_);
  preparing_ = std::async(std::launch::async, [this] { image_.touch(); });
}

// A disk that is nearly full gets the new checkpoint in place of older ones.
void SavedState::make_room(const SaveOptions& options) {
  const uint64_t needed = image_.file().size() + kRoomForTheRest;
  if (!fs_.exists(directory_) || fs_.free_bytes(directory_) >= needed) return;
  if (options.keep > 1) {
    const std::vector<std::string> removed =
        checkpoint::prune(fs_, directory_, {.keep = 1, .spared = options.spared, .sound = sound_path_});
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

void SavedState::wrote(uint64_t bytes) {
  written_ = bytes;
  const double deadline = (deadline_ ? deadline_() : std::nullopt).value_or(std::numeric_limits<double>::infinity());
  if (!give_up_ && clock_.monotonic_seconds() < deadline) return;
  throw Error(ErrorKind::kInterrupted, "",
              str("there was no time left when ", human_bytes(double(bytes)), " of ",
                  human_bytes(double(image_.file().size())), " were written"));
}

std::optional<double> SavedState::rest_seconds() const {
  if (background_.done() || to_memory_) return 0;  // into memory it takes no time to speak of
  const uint64_t written = written_;
  const double since = writing_since_;
  if (written == 0 || since == 0) {
    if (last_writing_ > 0) return last_writing_.load();
    return std::nullopt;
  }
  return (clock_.monotonic_seconds() - since) / double(written) * double(image_.file().size() - written);
}

std::optional<double> SavedState::whole_seconds() const {
  const uint64_t written = written_;
  if (saving() && !background_.done() && written > 0)
    return (clock_.monotonic_seconds() - writing_since_) / double(written) * double(image_.file().size());
  if (last_writing_ > 0) return last_writing_.load();
  return std::nullopt;
}

void SavedState::finish_save(std::vector<std::string>* notes) {
  checkpoint::BackgroundSave::Outcome outcome = background_.take();
  if (notes != nullptr) notes->insert(notes->end(), notes_.begin(), notes_.end());
  if (outcome.failure) std::rethrow_exception(outcome.failure);
  if (to_memory_) return;
  newest_path_ = sound_path_ = std::move(outcome.path);
  newest_step_ = saving_step_;
  newest_samples_ = saving_samples_;
}

std::string SavedState::save(const Engine& engine, const RunState& state, SaveOptions options,
                             std::vector<std::string>* notes) {
  start_save(engine, state, std::move(options));
  finish_save(notes);
  return newest_path_;
}

std::optional<RunState> SavedState::restore(Engine& engine, std::vector<std::string>* notes) {
  if (std::optional<RunState> state = restore_from_memory(engine)) return state;
  return restore_from_disk(engine, notes);
}

std::optional<RunState> SavedState::restore_from_memory(Engine& engine) {
  const std::optional<checkpoint::Manifest> manifest = memory_ ? memory_->manifest() : std::nullopt;
  if (!manifest) return std::nullopt;
  const std::string where = "the last state in memory";
  generation_.require_counts(*manifest);
  require_same_data(*manifest, where, where);
  for (const checkpoint::Candidate& candidate : checkpoint::list_checkpoints(fs_, directory_, /*hash=*/false)) {
    if (!candidate.valid) continue;
    if (candidate.step >= manifest->step) {  // one that is rotten is no reason to forget what is here
      if (checkpoint::examine_content(fs_, candidate).valid) return std::nullopt;
      continue;
    }
    newest_path_ = candidate.path;
    newest_step_ = candidate.step;
    newest_samples_ = checkpoint::read_manifest(fs_, candidate.path).samples;
    break;
  }
  if (!copy_state_back(image_, *manifest, engine.state())) return std::nullopt;
  engine.state_restored();
  generation_.goes_on_from(*manifest);
  restored_samples_ = manifest->samples;
  return RunState::from_json(manifest->state.at("run"), manifest->step, where);
}

void SavedState::require_same_data(const checkpoint::Manifest& manifest, const std::string& path,
                                   const std::string& where) const {
  const Json& state = manifest.state;
  if (!state.is_object() || !state.contains("run"))
    throw Error(ErrorKind::kData, where, "has no state of a training run");
  if (!state.contains("data_fingerprint") || state["data_fingerprint"] != data_fingerprint_)
    throw Error(ErrorKind::kData, path, "was trained on other data than data.train holds now",
                "put the data back, or start again with --resume never");
}

std::optional<RunState> SavedState::restore_from_disk(Engine& engine, std::vector<std::string>* notes) {
  if (!fs_.exists(directory_)) return std::nullopt;
  std::vector<checkpoint::Candidate> skipped;
  const auto place = [&](const checkpoint::TensorFile& file) {
    require_same_data(file.manifest, file.checkpoint_path, file.checkpoint_path + "/manifest.json");
    return destinations_in(engine, file);
  };
  const std::optional<checkpoint::Loaded> found = checkpoint::load_newest_valid(fs_, directory_, place, &skipped);
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
      if (candidate.trouble == Trouble::kSuperseded)
        throw Error(ErrorKind::kData, candidate.path, candidate.reason,
                    "and there is none else: to go on from it all the same, move away the generation-*.json beside it");
    }
    return std::nullopt;
  }

  engine.state_restored();
  newest_step_ = found->manifest.step;
  newest_samples_ = found->manifest.samples;
  newest_path_ = sound_path_ = found->path;
  restored_samples_ = newest_samples_;
  generation_.goes_on_from(found->manifest);
  return RunState::from_json(found->manifest.state.at("run"), newest_step_, found->path + "/manifest.json");
}

}  // namespace skytrain::train
