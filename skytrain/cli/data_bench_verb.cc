#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/process.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/data_source.h"
#include "skytrain/cli/data_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/data/input_bench.h"

namespace skytrain::cli {
namespace {

struct BenchFlags {
  DataFlags data;
  std::string transform = "imagenet-train";
  int64_t size = 224;
  uint64_t batch = 64, images = 0;
  double seconds = 10;
  int threads = 1;
  bool json = false;
};

// "imagenet-train"
std::vector<recipe::TransformSpec> imagenet_transforms() {
  recipe::TransformSpec crop, flip, normalize;
  crop.name = "random_resized_crop";
  flip.name = "flip";
  normalize.name = "normalize";
  normalize.mean = {0.485, 0.456, 0.406};
  normalize.std = {0.229, 0.224, 0.225};
  return {crop, flip, normalize};
}

std::string percent(double share) { return formatted("%.1f", 100 * share) + " %"; }

int bench(const BenchFlags& flags) {
  StopSignal::install();
  data::InputBenchResult result;
  const auto measure = [&](const std::string&, const data::Dataset& dataset) {
    const data::EncodedPictures* const pictures = dataset.encoded_pictures();
    if (pictures == nullptr)
      throw Error(ErrorKind::kUsage, flags.data.path, "holds no files of pictures: there is nothing to decode");
    result = data::bench_input(
        *pictures, imagenet_transforms(),
        {.batch = flags.batch, .seconds = flags.seconds, .images = flags.images, .threads = flags.threads},
        [] { return StopSignal::requests() > 0; });
  };
  for_each_split(flags.data, flags.size, measure, {.count_classes = false});
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
  add_data_flags(*sub, flags->data);
  sub->add_option("--transform", flags->transform, "imagenet-train: random resized crop, flip, normalise")
      ->capture_default_str()
      ->check(CLI::IsMember({"imagenet-train"}));
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
  add_exif_flag(*sub, flags->data);
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  actions[sub] = [flags] { return bench(*flags); };
}

}  // namespace skytrain::cli
