#include "skytrain/observe/report_fixture.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/observe/report.h"

namespace skytrain::observe {

namespace {

// Noise in [0, 1): SplitMix64 of a counter.
double noise(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

// A seven-segment digit with soft edges, so that a picture in a report can be recognised.
std::string digit_pixels(int digit, int channels, uint64_t seed) {
  constexpr const char* kSegments[] = {"abcdef", "bc",     "abdeg", "abcdg",   "bcfg",
                                       "acdfg",  "acdefg", "abc",   "abcdefg", "abcdfg"};
  constexpr struct {
    char name;
    double x1, y1, x2, y2;
  } kLines[] = {{'a', 9, 5, 19, 5},    {'b', 19, 5, 18.5, 14}, {'c', 18.5, 14, 18, 23}, {'d', 8, 23, 18, 23},
                {'e', 8.5, 14, 8, 23}, {'f', 9, 5, 8.5, 14},   {'g', 8.5, 14, 18.5, 14}};
  std::string pixels;
  for (int channel = 0; channel < channels; ++channel) {
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        double nearest = 28;
        for (const auto& line : kLines) {
          if (std::string_view(kSegments[digit]).find(line.name) == std::string_view::npos) continue;
          const double dx = line.x2 - line.x1, dy = line.y2 - line.y1;
          const double along = std::clamp(((x - line.x1) * dx + (y - line.y1) * dy) / (dx * dx + dy * dy), 0.0, 1.0);
          nearest = std::min(nearest, std::hypot(x - line.x1 - along * dx, y - line.y1 - along * dy));
        }
        const double grain = noise(seed * 1000003 + static_cast<uint64_t>(y * 28 + x));
        const double ink = std::clamp(2.6 - nearest - 0.7 * grain, 0.0, 1.0) * (channel == 1 ? 0.7 : 1);
        pixels.push_back(static_cast<char>(std::lround(255 * ink)));
      }
    }
  }
  return pixels;
}

std::string metrics_text(const FixtureOptions& options) {
  std::string text;
  for (uint64_t step = options.log_every; step <= options.steps; step += options.log_every) {
    const double at = static_cast<double>(step);
    const double lines = static_cast<double>(options.log_every);
    const OrderedJson line = {{"t", 1764510607 + at * 0.0043},
                              {"step", step},
                              {"samples", step * 64},
                              {"epoch", at / static_cast<double>(options.steps_per_epoch)},
                              {"loss", 2.2 * std::exp(-at / 120) + 0.09 + 0.09 * noise(step)},
                              {"lr", 0.0005 * (1 + std::cos(3.14159 * at / static_cast<double>(options.steps)))},
                              {"world", step * 2 > options.steps ? 2 : 1},
                              {"generation", step * 2 > options.steps ? 1 : 0},
                              {"samples_per_second", 14200 + 1500 * noise(step + 77)},
                              {"data_s", 0.0002 * lines},
                              {"forward_s", 0.0013 * lines},
                              {"backward_s", 0.0021 * lines},
                              {"optimizer_s", 0.0004 * lines},
                              {"other_s", 0.0003 * lines}};
    text += line.dump() + "\n";
    if (options.evaluated && step / options.log_every % 20 == 0) {
      const double top1 = 0.98 - 0.2 * std::exp(-at / 200);
      const OrderedJson eval = {
          {"loss", 0.07 + 0.6 * std::exp(-at / 200)}, {"top1", top1}, {"samples", 10000}, {"seconds", 0.21}};
      text += OrderedJson{{"t", 1764510607 + at * 0.0043},
                          {"step", step},
                          {"samples", step * 64},
                          {"epoch", at / static_cast<double>(options.steps_per_epoch)},
                          {"world", step * 2 > options.steps ? 2 : 1},
                          {"generation", step * 2 > options.steps ? 1 : 0},
                          {"eval", eval}}
                  .dump() +
              "\n";
    }
  }
  return text;
}

OrderedJson evaluation(const FixtureOptions& options) {
  OrderedJson classes = OrderedJson::array(), confusion = OrderedJson::array(), mistakes = OrderedJson::array();
  for (size_t truth = 0; truth < options.classes; ++truth) {
    classes.push_back(options.classes == 10 ? str(truth) : str("species ", truth));
    OrderedJson row = OrderedJson::array();
    for (size_t predicted = 0; predicted < options.classes; ++predicted) {
      const double grain = noise(truth * 1009 + predicted);
      row.push_back(truth == predicted ? 940 + static_cast<uint64_t>(40 * grain)
                                       : static_cast<uint64_t>(std::max(0.0, 22 * grain - 17)));
    }
    confusion.push_back(row);
  }
  for (int i = 0; i < 24; ++i) {
    const int label = (i * 7 + 5) % 10, predicted = (label + 1 + i % 3) % 10;
    const int channels = i == 3 ? 3 : 1;
    mistakes.push_back({{"index", 8 + 137 * i},
                        {"name", str("t10k-images-idx3-ubyte.gz[", 8 + 137 * i, "]")},
                        {"label", label},
                        {"predicted", predicted},
                        {"probability", 0.995 - 0.013 * i},
                        {"channels", channels},
                        {"height", 28},
                        {"width", 28},
                        {"pixels", base64(digit_pixels(label, channels, static_cast<uint64_t>(i)))}});
  }
  return {{"step", options.steps}, {"samples", 10000},       {"loss", 0.0712},      {"top1", 0.9787},
          {"classes", classes},    {"confusion", confusion}, {"mistakes", mistakes}};
}

OrderedJson summary(const FixtureOptions& options, const record::RunDirectory& run) {
  OrderedJson json = {{"status", options.status},      {"run_dir", run.path()},         {"report", run.report()},
                      {"steps", options.steps},        {"samples", options.steps * 64}, {"seconds", 8.2},
                      {"samples_per_second", 14650.2}, {"time_to_first_step_s", 0.62},  {"peak_rss_bytes", 331350016}};
  if (options.status == "interrupted")
    json["resume_command"] = str("skytrain train recipes/mnist.yaml --resume ", run.path());
  if (options.status == "failed") {
    json["error"] = {{"kind", "diverged"},
                     {"where", "step 412"},
                     {"what", "the loss became NaN"},
                     {"hint", "lower train.optimizer.lr, or set train.clip_norm; the state of step 400 is kept"}};
  } else {
    json["eval"] = {{"loss", 0.0712}, {"top1", 0.9787}, {"samples", 10000}};
  }
  json.update({{"train_loss", 0.1093},
               {"parameters", 216650},
               {"devices", 2},
               {"slot", 32},
               {"precision", "fp32"},
               {"time",
                {{"data_s", 0.375},
                 {"forward_s", 2.44},
                 {"backward_s", 3.94},
                 {"optimizer_s", 0.75},
                 {"other_s", 0.563},
                 {"evaluation_s", 1.89},
                 {"checkpoint_s", 0.06}}},
               {"data_fingerprint",
                {{"train", "9b1a4e0c5a7f4d0db4d7e0f3f7d1c2aa"}, {"eval", "51f4aa01c7be4e6c8d0e9f3a2b1c0d4e"}}},
               {"torch_version", "2.11.0"},
               {"version", "0.1.0"},
               {"attempts", 2}});
  return json;
}

OrderedJson run_json(const std::string& name) {
  const OrderedJson first = {{"started", "2025-11-30T13:50:07Z"},
                             {"ended", "2025-11-30T13:51:58Z"},
                             {"status", "interrupted"},
                             {"exit_code", 75},
                             {"steps", 938},
                             {"resume", false},
                             {"host", "node-a"},
                             {"pid", 4711}};
  const OrderedJson second = {{"started", "2025-11-30T13:52:40Z"},
                              {"resumed_from_step", 938},
                              {"resume", true},
                              {"host", "node-a"},
                              {"pid", 4802}};
  return {{"name", name},
          {"created", "2025-11-30T13:50:07Z"},
          {"command", {"skytrain", "train", "recipes/mnist.yaml", "--set", "train.epochs=2"}},
          {"version", "0.1.0"},
          {"commit", "4d3c2b1a"},
          {"recipe_file", "recipes/mnist.yaml"},
          {"host",
           {{"name", "node-a"},
            {"system", "Debian GNU/Linux 12 (bookworm)"},
            {"kernel", "6.1.0"},
            {"glibc", "2.36"},
            {"cpu", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"},
            {"cores", 2},
            {"cpu_features", {"avx2", "avx512f", "avx512_bf16", "amx_bf16"}},
            {"memory_bytes", 25769803776},
            {"gpu_driver", nullptr}}},
          {"attempts", {first, second}}};
}

OrderedJson recipe_json(const std::string& name) {
  return {{"version", 1},
          {"name", name},
          {"seed", 0},
          {"model", {{"name", "simplecnn"}, {"classes", 10}}},
          {"data",
           {{"train", {{"format", "idx"}, {"path", "data/mnist"}, {"split", "train"}}},
            {"transforms", {{{"normalize", {{"mean", {0.1307}}, {"std", {0.3081}}}}}}}}},
          {"train",
           {{"epochs", 2},
            {"batch", 64},
            {"slot", 32},
            {"loss", "cross_entropy"},
            {"optimizer", {{"name", "adam"}, {"lr", 0.001}, {"betas", {0.9, 0.999}}, {"weight_decay", 0.0}}},
            {"precision", "fp32"},
            {"clip_norm", nullptr}}},
          {"devices", 2}};
}

std::string recipe_yaml(const std::string& name) {
  return str(
      "version: 1                       # recipes/mnist.yaml:1:10\n"
      "name: " +
      name +
      "               # recipes/mnist.yaml:2:7\n"
      "seed: 0                          # default\n"
      "model:\n"
      "  name: simplecnn                # recipes/mnist.yaml:3:15\n"
      "  classes: 10                    # recipes/mnist.yaml:3:35\n"
      "data:\n"
      "  train:\n"
      "    format: idx                  # recipes/mnist.yaml:5:40\n"
      "    path: data/mnist             # recipes/mnist.yaml:5:17\n"
      "    split: train                 # recipes/mnist.yaml:5:52\n"
      "  transforms:\n"
      "    - normalize:\n"
      "        mean: [0.1307]           # recipes/mnist.yaml:7:25\n"
      "        std: [0.3081]            # recipes/mnist.yaml:7:40\n"
      "train:\n"
      "  epochs: 2                      # --set train.epochs=2\n"
      "  batch: 64                      # recipes/mnist.yaml:10:10\n"
      "  slot: 32                       # auto: batch / 2 devices\n"
      "  loss: cross_entropy            # default\n"
      "  optimizer:\n"
      "    name: adam                   # recipes/mnist.yaml:11:21\n"
      "    lr: 0.001                    # recipes/mnist.yaml:11:31\n"
      "    betas: [0.9, 0.999]          # default\n"
      "    weight_decay: 0              # default\n"
      "  precision: auto                # default\n"
      "  clip_norm: null                # default\n"
      "devices: 2                       # auto: as many as pay\n");
}

}  // namespace

void put_file(FileSystem& fs, const std::string& path, const std::string& text) {
  const auto file = fs.open_write(path, FileSystem::Mode::kTruncate);
  file->append(text);
  file->close();
}

record::RunDirectory write_fixture_run(FileSystem& fs, const std::string& runs, const std::string& name,
                                       const FixtureOptions& options) {
  const FakeClock clock(1764510607);
  const auto run =
      record::RunDirectory::create(fs, clock, runs, name, recipe_yaml(name), recipe_json(name), run_json(name));
  put_file(fs, run.metrics(), metrics_text(options));
  if (options.evaluated) put_file(fs, run.evaluation(), evaluation(options).dump());
  if (options.summarised) put_file(fs, run.summary(), summary(options, run).dump());
  return run;
}

record::RunDirectory write_hostile_run(FileSystem& fs, const std::string& runs) {
  const std::string evil =
      "</script><script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\">'\"&<!--\n\xff\xe2\x80\xae";
  const FixtureOptions options{.classes = 3};
  auto run = write_fixture_run(fs, runs, "hostile", options);
  OrderedJson eval = evaluation(options), result = summary(options, run), identity = run_json(evil),
              recipe = recipe_json(evil);
  eval["classes"] = {evil, "' onmouseover='window.pwned=3", "]]>&lt;b&gt;"};
  for (OrderedJson& mistake : eval["mistakes"]) {
    mistake["name"] = evil;
    mistake["label"] = mistake["label"].get<int>() % 5;  // some are no class at all
  }
  eval["mistakes"][1]["pixels"] = evil;
  eval["mistakes"][2]["width"] = 1e300;
  result["status"] = evil;
  result["precision"] = evil;
  result["version"] = evil;
  identity["host"][evil] = evil;
  identity["attempts"].push_back({{evil, evil}});
  recipe[evil] = {{evil, evil}};
  // As no careful writer would do it: the bytes as they are.
  const auto raw = [&](const OrderedJson& json) {
    const std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    std::string bytes;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find("\xef\xbf\xbd", begin), text.size());
      bytes.append(text, begin, end - begin);
      if (end < text.size()) bytes.push_back('\xff');
      begin = end + 3;
    }
    return bytes;
  };
  put_file(fs, run.evaluation(), raw(eval));
  put_file(fs, run.summary(), raw(result));
  put_file(fs, run.run_json(), raw(identity));
  put_file(fs, run.recipe_json(), raw(recipe));
  put_file(fs, run.recipe_yaml(), str("name: ", evil, "\n\t# ", evil));
  const record::RunDirectory moved(run.path() + "<i>\xfe\"");
  fs.rename(run.path(), moved.path());
  return moved;
}

// With SKYTRAIN_REPORT_FIXTURE=<folder> leaves runs with their reports there, for tests/judges/judge_report.py.
TEST(ReportFixture, IsWrittenWhenAsked) {
  const char* const folder = getenv("SKYTRAIN_REPORT_FIXTURE");
  if (!folder) return;
  FileSystem& fs = FileSystem::real();
  const std::pair<const char*, FixtureOptions> runs[] = {
      {"complete", {}},
      {"interrupted", {.steps = 5, .log_every = 1, .evaluated = false, .summarised = false}},
      {"stopped", {.steps = 700, .status = "interrupted"}},
      {"failed", {.steps = 411, .log_every = 3, .evaluated = false, .status = "failed"}},
      {"many-classes", {.steps = 20000, .log_every = 1, .classes = 120}},
  };
  for (const auto& [name, options] : runs) {
    fs.remove_tree(str(folder, "/", name));
    write_report(fs, write_fixture_run(fs, folder, name, options));
  }
  fs.remove_tree(str(folder, "/hostile"));
  write_report(fs, write_hostile_run(fs, folder));
}

}  // namespace skytrain::observe
