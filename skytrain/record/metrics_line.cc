#include "skytrain/record/metrics_line.h"

#include <utility>

#include "skytrain/base/json.h"

namespace skytrain::record {

namespace {

struct Field {
  std::string_view key;
  double MetricsLine::*member;
};

constexpr Field kFields[] = {
    {"t", &MetricsLine::t},
    {"samples", &MetricsLine::samples},
    {"epoch", &MetricsLine::epoch},
    {"loss", &MetricsLine::loss},
    {"lr", &MetricsLine::lr},
    {"world", &MetricsLine::world},
    {"generation", &MetricsLine::generation},
    {"samples_per_second", &MetricsLine::samples_per_second},
    {"data_s", &MetricsLine::data_s},
    {"forward_s", &MetricsLine::forward_s},
    {"backward_s", &MetricsLine::backward_s},
    {"optimizer_s", &MetricsLine::optimizer_s},
    {"other_s", &MetricsLine::other_s},
};

constexpr Field kEvalFields[] = {
    {"loss", &MetricsLine::eval_loss},
    {"top1", &MetricsLine::eval_top1},
    {"samples", &MetricsLine::eval_samples},
    {"seconds", &MetricsLine::eval_seconds},
};

// Receives the parser's events. The parser has no limit of depth and needs none: it does not recurse.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  MetricsLine line;
  bool has_step = false;
  std::string problem;

  bool key(std::string& name) override {
    target_ = nullptr;
    at_step_ = false;
    in_eval_ = in_eval_ && depth_ > 1;
    eval_next_ = false;
    if (depth_ == 1) {
      at_step_ = name == "step";
      eval_next_ = name == "eval";
      for (const Field& field : kFields) {
        if (field.key == name) target_ = &(line.*field.member);
      }
    } else if (depth_ == 2 && in_eval_) {
      for (const Field& field : kEvalFields) {
        if (field.key == name) target_ = &(line.*field.member);
      }
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_step_) {
      line.step = value;
      has_step = true;
    }
    return number(static_cast<double>(value));
  }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }

  bool null() override { return number(MetricsLine::kNone); }
  bool boolean(bool) override { return other(); }
  bool string(string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }

  bool start_object(std::size_t) override {
    if (depth_ == 1 && eval_next_) {
      in_eval_ = true;
      line.is_eval = true;
    }
    ++depth_;
    return other();
  }
  bool end_object() override {
    if (--depth_ == 1) in_eval_ = false;
    return other();
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) {
      problem = "is an array, not an object";
      return false;
    }
    ++depth_;
    return other();
  }
  bool end_array() override {
    --depth_;
    return other();
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem = "is not valid JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  // A number inside an array keeps no target: start_array cleared it.
  bool number(double value) {
    if (target_) *target_ = value;
    return other();
  }
  bool other() {
    target_ = nullptr;
    at_step_ = eval_next_ = false;
    return true;
  }

  double* target_ = nullptr;
  int depth_ = 0;
  bool at_step_ = false, eval_next_ = false, in_eval_ = false;
};

}  // namespace

std::optional<MetricsLine> parse_metrics_line(std::string_view text, std::string* problem) {
  Handler handler;
  if (!Json::sax_parse(text.data(), text.data() + text.size(), &handler)) {
    *problem = handler.problem;
    return std::nullopt;
  }
  if (!handler.has_step) {
    *problem = "has no whole number \"step\"";
    return std::nullopt;
  }
  return handler.line;
}

}  // namespace skytrain::record
