// `skytrain export`: a trained model for other programs. State dicts are copied from the checkpoint without tensors;
// TorchScript takes a worker.

#include <filesystem>
#include <map>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/cli/ask_worker.h"
#include "skytrain/cli/model_choice.h"
#include "skytrain/cli/model_flags.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/output_file.h"
#include "skytrain/cli/verb.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/weights/weights.h"

namespace skytrain::cli {
namespace {

constexpr char kModel[] = "model.", kAverage[] = "ema.";

struct ExportFlags {
  ModelRequest request;
  std::string output, format;
  bool raw = false, json = false, quiet = false;
};

std::string format_of(const ExportFlags& flags) {
  if (!flags.format.empty()) return flags.format;
  const std::string extension = std::filesystem::path(flags.output).extension().string();
  if (extension == ".pt" || extension == ".pth") return "pt";
  if (extension == ".safetensors") return "safetensors";
  throw Error(ErrorKind::kUsage, "--output", "\"" + printable(flags.output) + "\" does not say a format by its ending",
              "end it in .pt, .pth or .safetensors, or give --format");
}

// What a state dict holds. The arrays borrow from the file that was read, which `memory` keeps.
struct StateDict {
  std::vector<checkpoint::NamedArray> arrays;
  std::shared_ptr<const void> memory;
  bool averaged = false;
};

StateDict of_checkpoint(const FileSystem& fs, const ModelChoice& choice, bool raw) {
  const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, choice.checkpoint);
  if (manifest.files.size() != 1)
    throw Error(ErrorKind::kData, choice.checkpoint, "lists more than one file of replicated state");
  const auto file =
      std::make_shared<checkpoint::LoadedFile>(checkpoint::load_file(fs, choice.checkpoint, manifest.files[0]));
  StateDict dict;
  dict.memory = file;
  std::map<std::string, const checkpoint::ArrayInfo*> averages;
  for (const auto& [name, info] : file->header().arrays)
    if (name.starts_with(kAverage) && !raw) averages[name.substr(sizeof(kAverage) - 1)] = &info;
  dict.averaged = !averages.empty();
  for (const auto& [full_name, info] : file->header().arrays) {
    if (!full_name.starts_with(kModel)) continue;
    const std::string name = full_name.substr(sizeof(kModel) - 1);
    const std::string source = averages.contains(name) ? kAverage + name : full_name;
    dict.arrays.push_back({name, info.dtype, info.shape, file->bytes(source)});
  }
  return dict;
}

StateDict of_weights(const FileSystem& fs, const std::string& path) {
  const auto weights = std::make_shared<weights::Weights>(weights::read_weights(fs, path));
  return {weights->arrays, weights, false};
}

uint64_t write_state_dict(FileSystem& fs, const std::string& path, const StateDict& dict, const std::string& format) {
  uint64_t bytes = 0;
  write_file_atomically(fs, path, [&](WritableFile& file) {
    bytes = format == "pt" ? weights::write_pt(file, dict.arrays)
                           : checkpoint::write_safetensors(file, dict.arrays, {{"format", "pt"}});
  });
  return bytes;
}

int export_model(const ExportFlags& flags) {
  FileSystem& fs = FileSystem::real();
  set_log_level(flags.quiet ? LogLevel::kWarning : LogLevel::kInfo);
  const std::string output = output_file(fs, flags.output, "--output");
  const std::string format = format_of(flags);
  if (flags.raw && (format == "torchscript" || !flags.request.weights.empty()))
    throw Error(ErrorKind::kUsage, "--raw", "is for state dicts of runs", "leave it out");
  if (format != "torchscript" && !flags.request.sets.empty())
    throw Error(ErrorKind::kUsage, "--set", "changes nothing in a state dict",
                "leave it out; --raw gives the weights without their running mean");
  const ModelChoice choice = choose_model(fs, flags.request);
  for (const std::string& note : choice.notes) log_warning(note);

  OrderedJson result = {{"output", output}, {"format", format}};
  result["model"] = choice.checkpoint.empty() ? *choice.recipe.model.init : choice.checkpoint;
  if (format == "torchscript") {
    ask_worker(proto::Trace{recipe::to_json(choice.recipe), choice.checkpoint, output}, flags.quiet);
    result["bytes"] = fs.stat(output).value().size;
  } else {
    const StateDict dict =
        choice.checkpoint.empty() ? of_weights(fs, *choice.recipe.model.init) : of_checkpoint(fs, choice, flags.raw);
    if (choice.checkpoint.empty())
      log_info("a file of weights is converted as it is: the recipe's model is not looked at");
    result["bytes"] = write_state_dict(fs, output, dict, format);
    result["tensors"] = dict.arrays.size();
    result["averaged"] = dict.averaged;
  }
  if (flags.json) {
    print_json(result);
  } else {
    log_info(str(format, " of ", result["model"].get<std::string>(), ", ", human_bytes(result["bytes"].get<double>()),
                 result.value("averaged", false) ? ", the running mean of the weights" : ""));
    print_result(output);
  }
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Actions& actions) {
  auto flags = std::make_shared<ExportFlags>();
  add_model_flags(app, flags->request);
  app.add_option("-o,--output", flags->output, "The file to write")->required()->type_name("FILE");
  app.add_option(
         "--format", flags->format,
         "pt: a state dict for torch.load; safetensors; torchscript: for torch.jit.load (default: by the ending)")
      ->type_name("pt|safetensors|torchscript")
      ->check([](const std::string& text) {
        const bool known = text == "pt" || text == "safetensors" || text == "torchscript";
        return known ? std::string() : "\"" + printable(text, 60) + "\" is none of pt, safetensors, torchscript";
      });
  app.add_flag("--raw", flags->raw, "The weights themselves where the run has a running mean of them (train.ema)");
  app.add_flag("--json", flags->json, "Print the result as JSON");
  app.add_flag("-q,--quiet", flags->quiet, "Only warnings and errors");
  actions[&app] = [flags] { return export_model(*flags); };
}

}  // namespace skytrain::cli
