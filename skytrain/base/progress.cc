#include "skytrain/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>

#include "skytrain/base/console.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

constexpr double kRateWindowSeconds = 10;
constexpr size_t kWidestBar = 30;
constexpr size_t kNarrowestBar = 5;

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 359999) return "--:--";
  const long whole = std::lround(seconds);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%02ld:%02ld", whole / 60, whole % 60);
  }
  return text;
}

std::string draw_bar(double fraction, size_t cells, bool unicode) {
  static constexpr const char* kEighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const size_t per_cell = unicode ? 8 : 1;
  const auto filled = static_cast<size_t>(fraction * static_cast<double>(cells * per_cell));
  std::string out = "|";
  for (size_t cell = 0; cell < cells; ++cell) {
    const size_t part = std::clamp<size_t>(filled, cell * per_cell, (cell + 1) * per_cell) - cell * per_cell;
    out += part == per_cell ? (unicode ? "█" : "#") : kEighths[part];
  }
  return out + "|";
}

size_t columns_of(const Progress::Options& options) {
  if (options.columns > 0) return static_cast<size_t>(options.columns);
  winsize size{};
  if (::ioctl(options.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

struct Progress::Impl {
  Options options;
  std::string label, detail;
  uint64_t done = 0, total = 0;
  bool running = false;
  double last_output = 0;                          // when something was last shown
  uint64_t last_shown = 0;                         // `done` at that time
  std::string last_line;                           // of calm output
  std::deque<std::pair<double, uint64_t>> window;  // (time, done) of the last seconds: the rate is over it

  double now() const { return options.clock->monotonic_seconds(); }

  void observe(double time) {
    // A sample a twentieth of the window is enough: update() may be called ten thousand times a second.
    if (!window.empty() && window.size() > 1 && time - window[window.size() - 2].first < kRateWindowSeconds / 20) {
      window.back() = {time, done};
    } else {
      window.emplace_back(time, done);
    }
    while (window.size() > 2 && time - window[1].first >= kRateWindowSeconds) window.pop_front();
  }

  double rate() const {
    const double seconds = window.back().first - window.front().first;
    return seconds > 0 ? static_cast<double>(window.back().second - window.front().second) / seconds : 0;
  }

  double fraction() const {
    return total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  }

  // The pieces of a line, in order.
  std::string percent() const { return total == 0 ? std::string() : str(static_cast<int>(fraction() * 100), "%"); }
  std::string count() const {
    return human_count(static_cast<double>(done)) +
           (total == 0 ? " " + options.unit : "/" + human_count(static_cast<double>(total)));
  }
  std::string speed() const {
    const double r = rate();
    return r > 0 ? human_count(r) + " " + options.unit + "/s" : std::string();
  }
  std::string eta() const {
    if (total == 0) return {};
    const double r = rate();
    return "ETA " + clock_text(done >= total ? 0 : r > 0 ? static_cast<double>(total - done) / r : INFINITY);
  }

  std::string plain_line() const {
    std::string out = label;
    for (const std::string& piece : {percent(), count(), speed(), eta(), detail}) {
      if (!piece.empty()) out += "  " + piece;
    }
    return out;
  }

  // Fits into the terminal with its last column free: a full last column makes some terminals wrap. What matters least
  // goes first: the detail is cut, then the bar, the label and the rest.
  std::string bar_line() const {
    const size_t columns = columns_of(options);
    const size_t room = columns > 1 ? columns - 1 : 1;
    const std::string head = total == 0 ? label : str(label, "  ", percent());
    std::string tail;
    for (const std::string& piece : {count(), speed(), eta()}) {
      if (!piece.empty()) tail += (tail.empty() ? "" : "  ") + piece;
    }
    const size_t fixed = display_width(head) + 1 + display_width(tail);
    const size_t detail_width = detail.empty() ? 0 : display_width(detail) + 2;
    std::string out = head;
    if (total > 0 && fixed + 2 + kNarrowestBar <= room) {
      const size_t left = room - fixed - 2;
      const size_t cells = left >= detail_width + kNarrowestBar ? std::min(left - detail_width, kWidestBar)
                                                                : std::min(left, kNarrowestBar);
      out += draw_bar(fraction(), cells, options.unicode);
    }
    out += " " + tail;
    if (!detail.empty() && display_width(out) + 2 + std::min<size_t>(8, display_width(detail)) <= room) {
      out += "  " + cut_to_width(detail, room - display_width(out) - 2);
    }
    if (display_width(out) <= room) return out;
    return cut_to_width(total == 0 ? count() : str(percent(), " ", tail), room);
  }

  void show(double time) {
    if (options.is_terminal) {
      console::set_bar(options.fd, bar_line());
    } else {
      last_line = plain_line();
      console::print_line(options.fd, last_line);
    }
    last_output = time;
    last_shown = done;
  }

  bool due(double time) const {
    if (options.is_terminal) return time - last_output >= options.redraw_seconds;
    if (time - last_output >= options.line_seconds) return true;
    const auto tenth = [&](uint64_t value) {
      return static_cast<int>(std::min(1.0, static_cast<double>(value) / static_cast<double>(total)) * 10);
    };
    return total > 0 && tenth(done) > tenth(last_shown);
  }
};

Progress::Progress(Options options) : impl_(std::make_unique<Impl>()) { impl_->options = std::move(options); }

Progress::~Progress() {
  if (impl_->running && impl_->options.is_terminal) console::end_bar();
}

void Progress::start(const std::string& label, uint64_t done, uint64_t total) {
  Impl& p = *impl_;
  if (p.running) finish();
  p.label = printable(label);
  p.detail.clear();
  p.done = done;
  p.total = total;
  p.running = true;
  p.window.clear();
  const double time = p.now();
  p.observe(time);
  p.last_output = time;
  p.last_shown = done;
  p.last_line.clear();
  if (p.options.is_terminal) p.show(time);
}

void Progress::update(uint64_t done, const std::string& detail) {
  Impl& p = *impl_;
  if (!p.running) return;
  const double time = p.now();
  // After a restart from a checkpoint the count goes back; the rate starts anew.
  if (done < p.done) p.window.clear();
  p.done = done;
  p.observe(time);
  p.detail = printable(detail);
  if (p.due(time)) p.show(time);
}

void Progress::note(const std::string& line) { console::print_line(impl_->options.fd, line); }

void Progress::finish() {
  Impl& p = *impl_;
  if (!p.running) return;
  p.running = false;
  p.observe(p.now());
  if (p.options.is_terminal) {
    p.show(p.now());
    console::end_bar();
  } else if (p.plain_line() != p.last_line) {
    p.show(p.now());
  }
}

Progress::Options detect_terminal() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  Progress::Options options;
  options.is_terminal = ::isatty(2) == 1 && !variable("TERM").empty() && variable("TERM") != "dumb";
  const std::string_view locale = !variable("LC_ALL").empty()     ? variable("LC_ALL")
                                  : !variable("LC_CTYPE").empty() ? variable("LC_CTYPE")
                                                                  : variable("LANG");
  options.unicode = locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos ||
                    locale.find("UTF8") != locale.npos || locale.find("utf-8") != locale.npos;
  const int columns = std::atoi(std::string(variable("COLUMNS")).c_str());
  options.columns = columns > 0 && columns < 10000 ? columns : 0;
  return options;
}

}  // namespace skytrain
