#include <memory>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/process.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/data_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/data/input_bench.h"

namespace skytrain::cli {
namespace {

struct BenchFlags {
  std::string path, format = "imagefolder", transform = "imagenet-train";
  int64_t size = 224;
  uint64_t batch = 64, images = 0;
  double seconds = 10;
  int threads = 1;
  bool json = false;
};

std::vector<recipe::TransformSpec> transforms_of(const BenchFlags& flags) {
  recipe::TransformSpec normalize;
  normalize.name = "normalize";
  normalize.mean = {0.485, 0.456, 0.406};
  normalize.std = {0.229, 0.224, 0.225};
  if (flags.transform == "imagenet-eval") return {normalize};
  recipe::TransformSpec crop, flip;
  crop.name = "random_resized_crop";
  flip.name = "flip";
  return {crop, flip, normalize};
}

std::string percent(double share) { return formatted("%.1f", 100 * share) + " %"; }

int bench(const BenchFlags& flags) {
  const FileSystem& fs = FileSystem::real();
  recipe::DatasetSpec spec;
  spec.path = flags.path;
  spec.format = flags.format;
  spec.size = flags.size;
  if (flags.transform == "imagenet-eval") spec.resize = flags.size * 256 / 224;
  const auto dataset = data::open_dataset(fs, spec, {});
  const data::EncodedPictures* const pictures = dataset->encoded_pictures();
  if (pictures == nullptr)
    throw Error(ErrorKind::kUsage, "--format", "holds no files of pictures: there is nothing to decode");
  StopSignal::install();
  const data::InputBenchResult result = data::bench_input(
      *pictures, transforms_of(flags),
      {.batch = flags.batch, .seconds = flags.seconds, .images = flags.images, .threads = flags.threads},
      [] { return StopSignal::requests() > 0; });
  if (result.images == 0) throw Error(ErrorKind::kUsage, "--seconds", "ended before the first batch", "give more");
  const double images = static_cast<double>(result.images);
  const OrderedJson json = {
      {"images", result.images},
      {"seconds", result.seconds},
      {"images_per_second", images / result.seconds},
      {"images_per_core_second", images / result.cpu_seconds},
      {"peak_rss_bytes", peak_rss_bytes()},
      {"threads", flags.threads},
      {"batch", flags.batch},
      {"transform", flags.transform},
      {"stages", {{"read", result.read_share}, {"decode", result.decode_share}, {"resize", result.resize_share}}}};
  if (flags.json) {
    print_json(json);
    return 0;
  }
  TwoColumns table;
  table.row("images/s", formatted("%.0f", images / result.seconds));
  table.row("images/core-second", formatted("%.0f", images / result.cpu_seconds));
  table.row("peak memory", human_bytes(static_cast<double>(peak_rss_bytes())));
  table.row("read", percent(result.read_share));
  table.row("decode", percent(result.decode_share));
  table.row("resize and write", percent(result.resize_share));
  print_result(table.text());
  return 0;
}

}  // namespace

void add_data_bench(CLI::App& data, Actions& actions) {
  CLI::App* sub = data.add_subcommand("bench", "Measure how fast batches of pictures can be made");
  add_help_flag(*sub,
                "skytrain data bench photos/train --transform imagenet-train --batch 64 --seconds 10 --threads 2");
  auto flags = std::make_shared<BenchFlags>();
  sub->add_option("PATH", flags->path, "Folder, or file, of the data set")->required()->type_name("PATH");
  sub->add_option("--format", flags->format, "Format of the data set")->capture_default_str();
  sub->add_option("--transform", flags->transform,
                  "imagenet-train: random resized crop, flip, normalise; imagenet-eval: resize, centre crop, normalise")
      ->type_name("imagenet-train|imagenet-eval")
      ->capture_default_str()
      ->check(CLI::IsMember({"imagenet-train", "imagenet-eval"}));
  sub->add_option("--size", flags->size, "Height and width of a sample, in pixels")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  sub->add_option("--batch", flags->batch, "Samples of a batch")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{65536}));
  sub->add_option("--seconds", flags->seconds, "How long")->capture_default_str()->check(CLI::Range(0.01, 86400.0));
  sub->add_option("--images", flags->images, "End after so many; 0: do not")->capture_default_str();
  sub->add_option("--threads", flags->threads, "Threads that make batches")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return bench(*flags); };
}

}  // namespace skytrain::cli
