#include "skytrain/recipe/sections.h"

namespace skytrain::recipe {
namespace {

using Unit = Duration::Unit;

Codec<Duration> part_of_run(bool above_zero) {
  return duration({Unit::kSteps, Unit::kSamples, Unit::kEpochs, Unit::kPercent}, above_zero);
}

}  // namespace

const Section<ScheduleSpec>& schedule_section() {
  static const Section<ScheduleSpec>* const section = [] {
    auto* s = new Section<ScheduleSpec>;
    const auto below_one = real({.min = 0, .max = 1, .below_max = true});
    s->selector = &ScheduleSpec::name;
    s->add("name", &ScheduleSpec::name,
           choice("schedule", {"constant", "step", "multistep", "cosine", "cosine_restarts", "linear", "polynomial",
                               "one_cycle", "plateau"}),
           "how the learning rate goes on after the warm-up, as the schedulers of torch.optim.lr_scheduler do");
    s->add("warmup", &ScheduleSpec::warmup, part_of_run(/*above_zero=*/false),
           "the learning rate rises linearly over this part of the run; longer than the run: the ramp is cut",
           {.only_for = {"constant", "step", "multistep", "cosine", "cosine_restarts", "linear", "polynomial",
                         "plateau"}});
    s->add("min_lr", &ScheduleSpec::min_lr, real({.min = 0}), "where it ends, at most lr",
           {.only_for = {"cosine", "cosine_restarts", "linear", "polynomial", "plateau"}});
    s->add("every", &ScheduleSpec::every, part_of_run(true), "between two drops", {.only_for = {"step"}});
    s->add("milestones", &ScheduleSpec::milestones,
           list_of("list of amounts in steps, samples, epochs, %", 1, 64, true, part_of_run(true)),
           "when the rate drops, rising", {.required = true, .only_for = {"multistep"}});
    s->add("gamma", &ScheduleSpec::gamma, real({.min = 0, .max = 1, .above_min = true}), "factor of a drop",
           {.only_for = {"step", "multistep", "plateau"}});
    s->add("period", &ScheduleSpec::period, part_of_run(true), "of the first cosine",
           {.only_for = {"cosine_restarts"}});
    s->add("period_factor", &ScheduleSpec::period_factor, integer({1, 1000}), "each period is so many times the last",
           {.only_for = {"cosine_restarts"}});
    s->add("power", &ScheduleSpec::power, real({.min = 0, .max = 100, .above_min = true}), "of the polynomial",
           {.only_for = {"polynomial"}});
    s->add("rise", &ScheduleSpec::rise, real({.min = 0, .max = 1, .above_min = true, .below_max = true}),
           "part of the run in which the rate rises", {.only_for = {"one_cycle"}});
    s->add("start_factor", &ScheduleSpec::start_factor, real({.min = 1}), "the rate starts at lr / start_factor",
           {.only_for = {"one_cycle"}});
    s->add("final_factor", &ScheduleSpec::final_factor, real({.min = 1}),
           "the rate ends at lr / (start_factor * final_factor)", {.only_for = {"one_cycle"}});
    s->add("shape", &ScheduleSpec::shape, choice("shape", {"cosine", "linear"}), "between start, lr and end",
           {.only_for = {"one_cycle"}});
    s->add("three_phase", &ScheduleSpec::three_phase, boolean(),
           "the rate goes down to the start in as long as it rose, then on to the end", {.only_for = {"one_cycle"}});
    s->add("cycle_momentum", &ScheduleSpec::cycle_momentum, boolean(),
           "momentum, or the first of betas, goes down while the rate rises", {.only_for = {"one_cycle"}});
    s->add("base_momentum", &ScheduleSpec::base_momentum, below_one, "its lowest value", {.only_for = {"one_cycle"}});
    s->add("max_momentum", &ScheduleSpec::max_momentum, below_one, "its highest value", {.only_for = {"one_cycle"}});
    s->add("metric", &ScheduleSpec::metric, choice("metric", {"loss", "top1"}),
           "of the evaluation, which must become better", {.only_for = {"plateau"}});
    s->add("patience", &ScheduleSpec::patience, integer({0, kMaxCount}),
           "evaluations without a better one before the rate drops", {.only_for = {"plateau"}});
    s->add("cooldown", &ScheduleSpec::cooldown, integer({0, kMaxCount}), "evaluations after a drop that do not count",
           {.only_for = {"plateau"}});
    s->add("threshold", &ScheduleSpec::threshold, below_one, "relative change that counts as better",
           {.only_for = {"plateau"}});
    return s;
  }();
  return *section;
}

}  // namespace skytrain::recipe
