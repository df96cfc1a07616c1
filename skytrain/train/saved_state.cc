#include "skytrain/train/saved_state.h"

#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/train/data_description.h"
#include "skytrain/train/loops.h"

namespace skytrain::train {

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

std::string SavedState::save(const Engine& engine, const RunState& state, uint64_t samples, int64_t keep,
                             std::optional<uint64_t> spared, std::vector<std::string>* notes) {
  std::vector<tensor::NamedTensor> tensors = engine.state();
  std::vector<checkpoint::NamedArray> arrays;
  for (tensor::NamedTensor& item : tensors) {
    item.tensor = tensor::in_logical_order(item.tensor);
    arrays.push_back(tensor::as_array(item.name, item.tensor));
  }
  checkpoint::Manifest manifest;
  manifest.step = state.step;
  manifest.samples = samples;
  manifest.created_unix_seconds = clock_.unix_seconds();
  manifest.state = state_json(state);
  newest_path_ = checkpoint::commit(fs_, directory_, manifest, arrays);
  newest_step_ = state.step;
  if (keep > 0) {
    try {
      checkpoint::prune(fs_, directory_, keep, spared);
    } catch (const Error& error) {
      notes->push_back("old checkpoints could not be removed: " + error.message());
    }
  }
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

bool SavedState::finite(Engine& engine) {
  std::set<std::string> buffers;
  for (const tensor::NamedTensor& buffer : engine.model().buffers()) buffers.insert("model." + buffer.name);
  for (const tensor::NamedTensor& item : engine.state()) {
    if (buffers.contains(item.name)) continue;
    if (item.tensor.scalar_type() == at::kFloat &&
        !all_finite(item.tensor.const_data_ptr<float>(), item.tensor.numel()))
      return false;
    if (item.tensor.scalar_type() == at::kDouble &&
        !all_finite(item.tensor.const_data_ptr<double>(), item.tensor.numel()))
      return false;
  }
  return true;
}

}  // namespace skytrain::train
