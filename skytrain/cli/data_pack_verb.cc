// `skytrain data pack`.

#include <memory>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/progress.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/data_source.h"
#include "skytrain/cli/data_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/data/pack.h"
#include "skytrain/data/raw_as_png.h"
#include "skytrain/recipe/scalar.h"

namespace skytrain::cli {
namespace {

struct PackFlags {
  DataFlags data;
  std::string output, format = "mds", compression = "none", shard_size = "64MiB";
  int threads = 0;
  bool json = false;
};

data::PackOptions options_of(const PackFlags& flags) {
  data::PackOptions options;
  if (flags.format != "mds" && flags.format != "webdataset") {
    throw Error(ErrorKind::kUsage, "--format", str("\"", printable(flags.format, 60), "\" can't be packed to"),
                "formats: mds, webdataset");
  }
  options.format = flags.format;
  if (flags.compression != "none") {
    options.zstd_level = 3;
    const std::string level = flags.compression.starts_with("zstd:") ? flags.compression.substr(5) : "";
    int64_t number = 0;
    if (!level.empty() && !recipe::read_integer(level, &number) && number >= 1 && number <= 19) {
      options.zstd_level = static_cast<int>(number);
    } else if (flags.compression != "zstd") {
      throw Error(ErrorKind::kUsage, "--compression", str("\"", printable(flags.compression, 60), "\" is not known"),
                  "none, zstd, or zstd:LEVEL with a level from 1 to 19");
    }
    if (flags.format != "mds") {
      throw Error(ErrorKind::kUsage, "--compression",
                  "is for --format mds: compressed tar archives can't be read at "
                  "any place",
                  "leave it out; pictures hardly shrink");
    }
  }
  const auto refusal = recipe::read_bytes(flags.shard_size, &options.shard_bytes);
  if (refusal || options.shard_bytes < (uint64_t{64} << 10) || options.shard_bytes > (uint64_t{2} << 30)) {
    throw Error(ErrorKind::kUsage, "--shard-size",
                str("\"", printable(flags.shard_size, 60), "\" is no size from 64 KiB to 2 GiB"), "like 64MiB");
  }
  if (flags.threads < 0 || flags.threads > 1024) {
    throw Error(ErrorKind::kUsage, "--threads", str("is ", flags.threads, ", expected 1 to 1024, or 0: one a core"));
  }
  options.threads = flags.threads;
  options.stop = [] { return StopSignal::requests() > 0; };
  return options;
}

// What was written of one split.
struct Packed {
  std::string split, folder;
  data::PackResult result;
};

data::PackResult sum_of(const std::vector<Packed>& all) {
  data::PackResult sum;
  for (const Packed& one : all) {
    sum.samples += one.result.samples;
    sum.shards += one.result.shards;
    sum.kept += one.result.kept;
    sum.bytes += one.result.bytes;
  }
  return sum;
}

OrderedJson result_json(const data::PackResult& result) {
  return {{"samples", result.samples}, {"shards", result.shards}, {"kept", result.kept}, {"bytes", result.bytes}};
}

constexpr const char* kRawNote = "pixels were written as PNG, without loss; grey ones are read as three equal channels";

int pack(const PackFlags& flags) {
  data::PackOptions options = options_of(flags);
  std::vector<Packed> all;
  bool raw = false;
  for_each_split(flags.data, /*size=*/1, [&](const std::string& split, const data::Dataset& source) {
    if (source.encoded_pictures() == nullptr && !data::has_raw_pictures(source)) {
      throw Error(ErrorKind::kData, flags.data.path,
                  str("is of format ", source.info().format, ", whose samples are no pictures"),
                  "what can be packed is idx, cifar10, imagefolder, webdataset, mds, and jsonl with --image");
    }
    raw = raw || source.encoded_pictures() == nullptr;
    Progress progress(detect_terminal());
    progress.start(split == "all" ? "pack" : "pack " + split, 0, source.info().samples);
    options.done = [&](uint64_t samples) { progress.update(samples, ""); };
    const std::string folder = split == "all" ? flags.output : flags.output + "/" + split;
    all.push_back({split, folder, data::pack(FileSystem::real(), source, folder, options)});
    progress.finish();
  });
  const data::PackResult sum = sum_of(all);
  const bool splits = all.front().split != "all";
  if (flags.json) {
    OrderedJson json = {{"status", "ok"}, {"output", flags.output}, {"format", flags.format}};
    json.update(result_json(sum));
    for (const Packed& one : all) {
      if (splits) json["splits"][one.split] = result_json(one.result);
    }
    if (raw) json["notes"] = {kRawNote};
    print_json(json);
    return 0;
  }
  TwoColumns table;
  for (const Packed& one : all) table.row("output", one.folder);
  table.row("samples", human_count(static_cast<double>(sum.samples)));
  table.row("shards", str(human_count(static_cast<double>(sum.shards)),
                          sum.kept > 0 ? str(", of which ", sum.kept, " were there already") : ""));
  table.row("size", human_bytes(static_cast<double>(sum.bytes)));
  if (raw) table.row("note", kRawNote);
  print_result(table.text());
  return 0;
}

}  // namespace

void add_data_pack(CLI::App& app, Actions& actions) {
  CLI::App* sub = app.add_subcommand("pack", "Write a set of pictures anew as shards, which are read in order fast");
  add_help_flag(*sub, "skytrain data pack flowers/train -o flowers-mds --format mds");
  auto flags = std::make_shared<PackFlags>();
  add_data_flags(*sub, flags->data, "--from");
  sub->add_option(
         "-o,--output", flags->output,
         "The folder to write (of idx and cifar10 a folder in it for each split); where it holds a part already, "
         "packing goes on")
      ->required()
      ->type_name("FOLDER");
  sub->add_option("--format", flags->format, "mds (MosaicML Streaming) or webdataset (tar archives)")
      ->capture_default_str();
  sub->add_option("--compression", flags->compression, "mds: none, zstd or zstd:LEVEL")->capture_default_str();
  sub->add_option("--shard-size", flags->shard_size, "The most that the samples of a shard take, before compression")
      ->capture_default_str()
      ->type_name("SIZE");
  sub->add_option("--threads", flags->threads, "Shards that are written at a time; 0: one a core")
      ->capture_default_str()
      ->type_name("N");
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return pack(*flags); };
}

}  // namespace skytrain::cli
