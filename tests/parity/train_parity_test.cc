// Parity with Python PyTorch of what a trainer is made of: optimizers, groups, clipping, slots, averaged weights and
// losses over 200 steps in fp64, losses and schedules alone, and the loss scale of fp16. goldens_train.safetensors is
// what torch.optim (its single-tensor forms, not the fused kernels), torch.nn.functional and lr_scheduler computed.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "goldens.h"
#include "skytrain/model/layers.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/schedule.h"

namespace skytrain {
namespace {

using recipe::Duration;

const parity::Goldens& goldens() {
  static const parity::Goldens goldens("goldens_train.safetensors");
  return goldens;
}
const Json& train_cases() { return goldens().cases().at("train"); }

void expect_close(const std::vector<double>& ours, const std::string& key, double tolerance) {
  parity::expect_close(ours, goldens()[key], key, tolerance);
}

// fc1 -> layer norm -> relu -> fc2 -> relu -> fc3: a model of somebody's own.
class NormedMlp final : public model::Model {
 public:
  NormedMlp(int64_t in, const std::vector<int64_t>& hidden, int64_t classes) {
    model::LayerBuilder builder{*this, at::detail::createCPUGenerator(0), at::kDouble};
    fc1_ = model::Linear(builder, "fc1", in, hidden[0]);
    weight_ = builder.parameter("norm1.weight", at::ones({hidden[0]}, at::kDouble));
    bias_ = builder.parameter("norm1.bias", at::zeros({hidden[0]}, at::kDouble));
    fc2_ = model::Linear(builder, "fc2", hidden[0], hidden[1]);
    fc3_ = model::Linear(builder, "fc3", hidden[1], classes);
  }
  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor normed = at::layer_norm(fc1_(images.flatten(1)), {weight_.size(0)}, weight_, bias_);
    return fc3_(fc2_(normed.relu()).relu());
  }

 private:
  model::Linear fc1_, fc2_, fc3_;
  at::Tensor weight_, bias_;
};

struct Case {
  Case(const std::string& model_name, const std::string& case_name)
      : model(train_cases().at("models").at(model_name)), settings(train_cases().at("cases").at(case_name)) {
    spec.name = model_name;
    spec.classes = model.at("classes");
    if (model.contains("width_of_first_block")) spec.width = model.at("width_of_first_block");
    options.input = {model.at("channels"), model.at("height"), model.at("width")};
    options.dtype = at::kDouble;
    optimizer = parity::optimizer_spec(settings.at("optimizer"));
    optimizer.no_decay = settings.value("no_decay", false);
    if (settings.contains("groups"))
      for (const Json& group : settings.at("groups").at(model_name)) {
        recipe::ParameterGroupSpec own{.match = group.at("match"), .lr_scale = group.value("lr_scale", 1.0)};
        if (group.contains("weight_decay")) own.weight_decay = group.at("weight_decay").get<double>();
        optimizer.groups.push_back(own);
      }
    if (settings.contains("clip_norm")) options.clip_norm = settings.at("clip_norm").at(model_name).get<double>();
    if (settings.contains("clip_value")) options.clip_value = settings.at("clip_value").at(model_name).get<double>();
    if (settings.contains("ema")) options.ema = settings.at("ema").get<double>();
    if (settings.contains("loss")) {
      const Json& loss = settings.at("loss");
      options.loss = train::Loss(train::Loss::kind_of(loss.at("name")), loss.value("label_smoothing", 0.0));
      dense = loss.value("target", "") == "dense";
      if (dense) options.target_values = spec.classes;
    }
  }

  std::unique_ptr<model::Model> build() const {
    std::unique_ptr<model::Model> built;
    if (spec.name == "normed_mlp") {
      built = std::make_unique<NormedMlp>(options.input.channels * options.input.height * options.input.width,
                                          model.at("hidden").get<std::vector<int64_t>>(), spec.classes);
    } else {
      built = model::build_model(spec, options.input, at::detail::createCPUGenerator(0), at::kDouble);
    }
    parity::fill_weights(built->parameters());
    if (settings.contains("zero"))
      for (const tensor::NamedTensor& parameter : built->parameters())
        if (parameter.name == settings.at("zero").at(spec.name)) parameter.tensor.detach().zero_();
    return built;
  }

  void fill(const data::Slot& slot, const at::Tensor& images, const at::Tensor& target) const {
    const uint64_t signal = goldens().cases().at("signal_quarters").at(std::to_string(options.input.channels));
    const uint64_t classes = uint64_t(spec.classes);
    for (uint64_t i = 0; i < slot.count; ++i) {
      const uint64_t sample = slot.begin + i;
      parity::fill_picture(sample, classes, signal, images[int64_t(i)]);
      if (!dense) {
        target.mutable_data_ptr<int64_t>()[i] = parity::label_of(sample, classes);
        continue;
      }
      parity::for_each_element(target[int64_t(i)], [&](int64_t output) {
        const double u = parity::unit(7, sample * classes + uint64_t(output));
        return options.loss.kind() == train::Loss::Kind::kMse ? u : (u + 1) / 2;
      });
    }
  }

  Json model, settings;
  recipe::ModelSpec spec;
  recipe::OptimizerSpec optimizer;
  train::Engine::Options options;
  bool dense = false;
};

recipe::ScheduleSpec schedule_spec(const Json& golden) {
  recipe::ScheduleSpec spec;
  spec.name = golden.at("name");
  const auto steps = [](const Json& count) { return Duration{count.get<double>(), Duration::Unit::kSteps}; };
  spec.warmup = steps(golden.at("warmup"));
  spec.min_lr = golden.value("min_lr", spec.min_lr);
  if (golden.contains("every")) spec.every = steps(golden.at("every"));
  if (golden.contains("milestones"))
    for (const Json& milestone : golden.at("milestones")) spec.milestones.push_back(steps(milestone));
  if (golden.contains("period")) spec.period = steps(golden.at("period"));
  spec.gamma = golden.value("gamma", spec.gamma);
  spec.period_factor = golden.value("period_factor", spec.period_factor);
  spec.power = golden.value("power", spec.power);
  spec.rise = golden.value("rise", spec.rise);
  spec.start_factor = golden.value("start_factor", spec.start_factor);
  spec.final_factor = golden.value("final_factor", spec.final_factor);
  spec.shape = golden.value("shape", spec.shape);
  spec.three_phase = golden.value("three_phase", spec.three_phase);
  spec.base_momentum = golden.value("base_momentum", spec.base_momentum);
  spec.max_momentum = golden.value("max_momentum", spec.max_momentum);
  spec.patience = golden.value("patience", spec.patience);
  spec.cooldown = golden.value("cooldown", spec.cooldown);
  spec.threshold = golden.value("threshold", spec.threshold);
  return spec;
}

class TrainParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(TrainParity, TwoHundredStepsInFp64) {
  constexpr uint64_t kSteps = 200, kBatch = 8;
  const auto& [model_name, case_name] = GetParam();
  const Case golden(model_name, case_name);
  const std::string prefix = "train/" + model_name + "/" + case_name;
  const data::Slots slots(kBatch * (kSteps + 1), kBatch, golden.settings.value("slot", kBatch));
  std::optional<train::Schedule> schedule;
  if (golden.settings.contains("schedule"))
    schedule.emplace(schedule_spec(golden.settings.at("schedule")), golden.optimizer.lr, kBatch, kBatch * kSteps,
                     kBatch * kSteps);
  // Replicas beyond the first are built by name, which a model of somebody's own has none of.
  for (const int replicas : model_name == "normed_mlp" ? std::vector<int>{1} : std::vector<int>{1, 3}) {
    SCOPED_TRACE(testing::Message() << replicas << " replicas");
    train::Engine::Options options = golden.options;
    options.replicas = replicas;
    train::Engine engine(golden.spec, golden.optimizer, /*seed=*/0, options, golden.build());
    std::vector<double> losses, rates, norms;
    for (uint64_t step = 0; step < kSteps; ++step) {
      rates.push_back(schedule ? schedule->rate(step * kBatch) : golden.optimizer.lr);
      const train::StepResult result =
          engine.step(slots, step, {.lr = rates.back(), .step = step + 1},
                      [&](const data::Slot& slot, const at::Tensor& images, const at::Tensor& target) {
                        golden.fill(slot, images, target);
                      });
      losses.push_back(result.loss_sum / double(result.samples));
      norms.push_back(result.gradient_norm);
    }
    expect_close(losses, prefix + "/loss", 1e-6);
    if (schedule) expect_close(rates, prefix + "/lr", 1e-12);
    if (golden.settings.contains("clip_norm")) expect_close(norms, prefix + "/norm", 1e-6);
    size_t compared = 0;
    for (const tensor::NamedTensor& item : engine.state()) {
      std::string key = item.name;
      if (key.starts_with("model."))
        key = "state/" + key.substr(6);
      else if (key.starts_with("ema."))
        key = "ema/" + key.substr(4);
      else
        continue;
      expect_close(parity::sampled(item.tensor, train_cases().at("sample")), prefix + "/" + key, 1e-6);
      ++compared;
    }
    // The running mean has no buffers of its own.
    const size_t buffers = golden.options.ema ? engine.model().buffers().size() : 0;
    EXPECT_EQ(compared + buffers,
              goldens().with_prefix(prefix + "/state/").size() + goldens().with_prefix(prefix + "/ema/").size());
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& [name, settings] : train_cases().at("cases").items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainParity,
                         testing::Combine(testing::Values("normed_mlp", "convnet"), testing::ValuesIn(case_names())),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

TEST(LossParity, ValueAndGradientAreThoseOfTorch) {
  const Json& losses = goldens().cases().at("losses");
  const int64_t rows = losses.at("rows"), outputs = losses.at("outputs");
  size_t compared = 0;
  for (const auto& [name, golden] : losses.at("cases").items()) {
    const train::Loss loss(train::Loss::kind_of(golden.at("name")), golden.value("label_smoothing", 0.0));
    at::Tensor target = at::empty({rows}, at::kLong);
    for (int64_t r = 0; r < rows; ++r)
      target.mutable_data_ptr<int64_t>()[r] = int64_t(parity::bits(9, uint64_t(r)) % uint64_t(outputs));
    if (golden.value("target", "") == "dense") {
      target = at::empty({rows, outputs}, at::kDouble);
      parity::for_each_element(target, [&](int64_t i) {
        const double u = parity::unit(7, uint64_t(i));
        return loss.kind() == train::Loss::Kind::kMse ? u : (u + 1) / 2;
      });
    }
    for (const double scale : losses.at("scales")) {
      at::Tensor logits = at::empty({rows, outputs}, at::kDouble);
      parity::for_each_element(logits, [&](int64_t i) { return scale * parity::unit(8, uint64_t(i)); });
      logits.set_requires_grad(true);
      const at::Tensor mean = loss.sum(logits, target).div(rows);
      mean.backward();
      const std::string prefix = "loss/" + name + "/" + std::to_string(int(scale));
      expect_close({mean.item<double>()}, prefix + "/value", 1e-12);
      const at::Tensor gradient = logits.grad().contiguous();
      expect_close({gradient.const_data_ptr<double>(), gradient.const_data_ptr<double>() + gradient.numel()},
                   prefix + "/gradient", 1e-12);
      compared += 2;
    }
  }
  EXPECT_EQ(compared, goldens().with_prefix("loss/").size());
}

TEST(ScheduleParity, RatesAndMomentaAreThoseOfLrScheduler) {
  const Json& schedules = goldens().cases().at("schedule");
  const uint64_t total = schedules.at("total");
  for (const auto& [name, golden] : schedules.at("cases").items()) {
    const double base = golden.at("base");
    const uint64_t warmup = golden.at("warmup");
    const recipe::ScheduleSpec spec = schedule_spec(golden);
    for (const uint64_t batch : {1, 64}) {
      const train::Schedule schedule(spec, base, batch, batch * total, batch * total);
      train::Plateau plateau(spec, base);
      const bool watches = spec.name == "plateau";
      const std::vector<double> metric = watches ? goldens()["schedule/" + name + "/metric"] : std::vector<double>{};
      std::vector<double> rates, momenta;
      for (uint64_t step = 0; step < total; ++step) {
        rates.push_back(schedule.rate(step * batch) * (watches ? plateau.factor() : 1));
        if (const auto momentum = schedule.momentum(step * batch)) momenta.push_back(*momentum);
        if (watches && step >= warmup) plateau.observe(metric[step - warmup]);
      }
      expect_close(rates, "schedule/" + name + "/lr", 1e-12);
      if (spec.name == "one_cycle") expect_close(momenta, "schedule/" + name + "/momentum", 1e-12);
    }
  }
}

TEST(ScalerParity, ScaleAndTrackerAreExact) {
  for (const auto& [name, golden] : goldens().cases().at("scaler").at("cases").items()) {
    train::GradScaler scaler({.init_scale = golden.at("init_scale"),
                              .growth_factor = golden.at("growth_factor"),
                              .backoff_factor = golden.at("backoff_factor"),
                              .growth_interval = golden.at("growth_interval")});
    const std::string prefix = "scaler/" + name;
    const std::vector<double> overflow = goldens()[prefix + "/overflow"], scales = goldens()[prefix + "/scale"],
                              trackers = goldens()[prefix + "/growth_tracker"];
    ASSERT_EQ(overflow.size(), goldens().cases().at("scaler").at("updates").get<size_t>());
    for (size_t i = 0; i < overflow.size(); ++i) {
      scaler.update(overflow[i] != 0);
      ASSERT_EQ(double(scaler.scale()), scales[i]) << name << " update " << i;
      ASSERT_EQ(double(scaler.growth_tracker()), trackers[i]) << name << " update " << i;
      train::GradScaler again;
      again.from_json(scaler.to_json());
      ASSERT_EQ(again.scale(), scaler.scale());
    }
  }
}

}  // namespace
}  // namespace skytrain
