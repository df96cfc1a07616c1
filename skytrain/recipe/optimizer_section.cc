#include "skytrain/recipe/named_list.h"
#include "skytrain/recipe/sections.h"

namespace skytrain::recipe {
namespace {

const Section<ParameterGroupSpec>& group_section() {
  static const Section<ParameterGroupSpec>* const section = [] {
    auto* s = new Section<ParameterGroupSpec>;
    s->add("lr_scale", &ParameterGroupSpec::lr_scale, real({.min = 0, .max = 1e6}),
           "times the scheduled learning rate; 0: the parameters stay as they are");
    s->add("weight_decay", &ParameterGroupSpec::weight_decay, optional_with("null", real({.min = 0})),
           "null: the optimizer's");
    return s;
  }();
  return *section;
}

void add_groups(Section<OptimizerSpec>& s) {
  const auto refuse = [](const std::string& pattern) -> NameRefusal {
    const std::string hint = "a group is written `- \"layer1.*\": {lr_scale: 0.1}`";
    return {pattern.empty() ? "is an empty pattern" : "", hint};
  };
  auto& field = add_named_list(
      s, "groups", &OptimizerSpec::groups,
      named_list("group", "\"layer1.*\": {lr_scale: 0.1}", 256, &ParameterGroupSpec::match, group_section(), refuse),
      "parameters with settings of their own, each written `- pattern: {keys}`; patterns match names as the shell's "
      "do, the first match holds");
  const auto list_document = field.document;
  field.document = [list_document](const std::string& path, const DocSink& sink) {
    list_document(path, sink);
    group_section().document(path + "[i].PATTERN", sink);
  };
}

}  // namespace

const Section<OptimizerSpec>& optimizer_section() {
  static const Section<OptimizerSpec>* const section = [] {
    auto* s = new Section<OptimizerSpec>;
    const std::vector<std::string> adams = {"adam", "adamw", "lamb"};
    s->selector = &OptimizerSpec::name;
    s->add("name", &OptimizerSpec::name, choice("optimizer", {"sgd", "adam", "adamw", "lamb"}),
           "as torch.optim.SGD, Adam and AdamW; lamb: You et al. 2019", {.required = true});
    s->add("lr", &OptimizerSpec::lr, real({.min = 0, .above_min = true}), "learning rate at its highest",
           {.required = true});
    s->add("momentum", &OptimizerSpec::momentum, real({.min = 0, .max = 1, .below_max = true}), "momentum",
           {.only_for = {"sgd"}});
    s->add("nesterov", &OptimizerSpec::nesterov, boolean(), "Nesterov's momentum", {.only_for = {"sgd"}});
    s->add_translated<std::vector<double>>(
        "betas", list_of("list of 2 numbers, >= 0 and < 1", 2, 2, false, real({.min = 0, .max = 1, .below_max = true})),
        [](const OptimizerSpec& o) {
          return std::vector<double>{o.beta1, o.beta2};
        },
        [](OptimizerSpec* o, const std::vector<double>& betas) {
          o->beta1 = betas[0];
          o->beta2 = betas[1];
        },
        "decay of the running means of the gradient and of its square", {.only_for = adams});
    s->add("eps", &OptimizerSpec::eps, real({.min = 0, .above_min = true}), "added to the denominator",
           {.only_for = adams});
    s->add("weight_decay", &OptimizerSpec::weight_decay, real({.min = 0}),
           "times the weights; sgd, adam: added to the gradient (L2); adamw, lamb: decoupled from it");
    s->add("no_decay", &OptimizerSpec::no_decay, boolean(),
           "true: biases and normalisation layers, parameters of one dimension, are not decayed");
    add_groups(*s);
    s->check = [](const OptimizerSpec& o, const Value& value, Reader& reader) {
      if (o.nesterov && o.momentum == 0) {
        const Reader::Scope scope(reader, "nesterov");
        reader.problem(value.find("nesterov")->place, "needs a momentum above 0",
                       "set momentum: 0.9, or nesterov: false");
      }
    };
    return s;
  }();
  return *section;
}

}  // namespace skytrain::recipe
