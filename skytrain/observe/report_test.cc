#include "skytrain/observe/report.h"

#include <gtest/gtest.h>

#include <chrono>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/observe/assets.h"
#include "skytrain/observe/report_fixture.h"

namespace skytrain::observe {
namespace {

testing::AssertionResult says(const std::string& page, const std::string& text) {  // a page is too long to print
  if (page.find(text) != std::string::npos) return testing::AssertionSuccess() << "it says: " << text;
  return testing::AssertionFailure() << "it does not say: " << text;
}

size_t occurrences(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// The page without what it carries for every run: style sheet, scripts, licence.
std::string body_of(const std::string& page) {
  std::string body = page.substr(page.find("<main>"));
  return body.substr(0, body.find("<footer>"));
}

// What stands between "<" and ">", for each such pair.
std::vector<std::string> tags(const std::string& html) {
  std::vector<std::string> out;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    out.push_back(html.substr(at + 1, html.find('>', at) - at - 1));
  }
  return out;
}

// Every element that is opened is closed in order: markup that a value had broken would show here.
std::string unbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (const std::string& tag : tags(html)) {
    const bool closing = tag.front() == '/';
    const std::string name = tag.substr(closing, tag.find(' ') - closing);
    if (name == "img" || name == "br") continue;
    if (!closing) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return str("</", name, "> closes ", open.empty() ? "nothing" : open.back());
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

// Whether a tag has an attribute whose name begins so; values in quotes are passed over.
bool has_attribute(const std::string& tag, std::string_view beginning) {
  bool quoted = false;
  for (size_t i = 0; i < tag.size(); ++i) {
    if (tag[i] == '"') quoted = !quoted;
    if (!quoted && tag[i] == ' ' && std::string_view(tag).substr(i + 1, beginning.size()) == beginning) return true;
  }
  return false;
}

TEST(Report, TellsACompleteRun) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "mnist-simplecnn", {});
  write_report(fs, run);
  const std::string page = fs.read_file(run.report());
  const std::string body = body_of(page);
  EXPECT_EQ(unbalanced(body), "");
  for (const char* expected : {"mnist-simplecnn <span class=\"status good\">complete</span>",
                               "97.87 %",
                               "(9,787 of 10,000)",
                               "0.0712",
                               "14,650",
                               "id=\"curves\"",
                               "id=\"time\"",
                               "id=\"confusion\"",
                               "id=\"classes\"",
                               "id=\"mistakes\"",
                               "id=\"environment\"",
                               "id=\"recipe\"",
                               "316.0 MiB",
                               "Intel(R) Xeon(R) Platinum 8481C",
                               "--set train.epochs=2",
                               "auto: batch / 2 devices",
                               "[0.9, 0.999]",
                               "9b1a4e0c5a7f4d0db4d7e0f3f7d1c2aa",
                               "Who trained which steps",
                               "Waiting for data",
                               "Checkpoints"}) {
    EXPECT_TRUE(says(body, expected));
  }
  EXPECT_EQ(occurrences(body, "src=\"data:image/png;base64,"), 24u);
  EXPECT_EQ(occurrences(body, " alt=\""), 24u);
  EXPECT_EQ(occurrences(body, "<table"), occurrences(body, "<caption>"));
  EXPECT_EQ(occurrences(body, "<canvas"), 4u);
}

TEST(Report, IsTheSameForTheSameRecords) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "mnist", {});
  const std::string first = render_report(fs, run);
  write_report(fs, run);
  EXPECT_EQ(render_report(fs, run), first);
}

TEST(Report, AsksForNothingFromOutsideAndAllowsOnlyItsOwnScripts) {
  MemoryFileSystem fs;
  const std::string page = render_report(fs, write_fixture_run(fs, "/runs", "mnist", {}));
  for (const std::string& tag : tags(body_of(page))) {
    for (const char* element : {"script", "style", "link", "iframe", "object", "embed", "base", "form"}) {
      EXPECT_NE(tag.substr(0, tag.find(' ')), element);
    }
    EXPECT_FALSE(has_attribute(tag, "on")) << tag;     // handlers, and
    EXPECT_FALSE(has_attribute(tag, "style")) << tag;  // styles, which the policy would block
    if (has_attribute(tag, "src")) {
      EXPECT_TRUE(says(tag, "src=\"data:"));
    }
    if (has_attribute(tag, "href")) {
      EXPECT_TRUE(says(tag, "href=\"#"));
    }
  }
  EXPECT_EQ(occurrences(assets::report_css(), "url("), 0u);
  EXPECT_EQ(occurrences(assets::report_css(), "@import"), 0u);
  EXPECT_TRUE(says(page, "default-src 'none'; img-src data:;"));
  EXPECT_FALSE(says(page, "unsafe"));
  EXPECT_TRUE(says(page, str("'sha256-", assets::report_js_sha256(), "'")));
  EXPECT_LT(page.find("Content-Security-Policy"), page.find("<style>"));
}

// A class named "</script>" ended the data block of another tool's report and ran as code.
TEST(Report, ShowsHostileTextAsText) {
  MemoryFileSystem fs;
  const auto run = write_hostile_run(fs, "/runs");
  const std::string page = render_report(fs, run);
  const std::string body = body_of(page);
  EXPECT_EQ(occurrences(page, "<script"), 3u);
  EXPECT_EQ(occurrences(page, "</script"), 3u);
  EXPECT_EQ(unbalanced(body), "");
  EXPECT_EQ(occurrences(body, "<img "), occurrences(body, "<img src=\"data:image/png;base64,"));
  EXPECT_TRUE(says(body, "&lt;script&gt;window.pwned=1"));
  EXPECT_FALSE(says(body, "<script>window"));
  EXPECT_FALSE(says(body, "<!--"));
  EXPECT_FALSE(says(body, "\xe2\x80\xae"));  // turns the direction of writing
  EXPECT_TRUE(says(body, "\\xFE&quot;"));    // the path's byte that is no UTF-8
  EXPECT_TRUE(says(body, "holds bytes that are not UTF-8"));
  EXPECT_EQ(occurrences(body, "class=\"no-picture\""), 2u);
  EXPECT_NO_THROW(OrderedJson(page).dump());  // the whole page is UTF-8
}

// A run ended after five steps left no report at all, when it was wanted most.
TEST(Report, OfARunThatWasCutShortSaysHowFarItCame) {
  MemoryFileSystem fs;
  const FixtureOptions options{.steps = 5, .log_every = 1, .evaluated = false, .summarised = false};
  const auto run = write_fixture_run(fs, "/runs", "mnist", options);
  const std::string metrics = fs.read_file(run.metrics());
  put_file(fs, run.metrics(), metrics + "{\"t\":17645");
  const std::string body = body_of(render_report(fs, run));
  EXPECT_TRUE(says(body, "unfinished"));
  EXPECT_TRUE(says(body, "The last step on record is 5."));
  EXPECT_TRUE(says(body, "has no end"));
  EXPECT_TRUE(says(body, "summed from the lines of metrics"));
  EXPECT_FALSE(says(body, "id=\"confusion\""));
  EXPECT_EQ(unbalanced(body), "");
}

TEST(Report, OfAnInterruptedRunGivesTheCommandThatResumesIt) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "mnist", {.steps = 700, .status = "interrupted"});
  const std::string body = body_of(render_report(fs, run));
  EXPECT_TRUE(says(body, "<code>skytrain train recipes/mnist.yaml --resume " + run.path() + "</code>"));
  EXPECT_TRUE(says(body, "status warn\">interrupted"));
}

TEST(Report, OfAFailedRunGivesTheErrorAndWhatToDo) {
  MemoryFileSystem fs;
  FixtureOptions options{.steps = 411, .log_every = 1, .evaluated = false, .status = "failed"};
  const auto run = write_fixture_run(fs, "/runs", "mnist", options);
  put_file(fs, run.metrics(), fs.read_file(run.metrics()) + "{\"t\":1,\"step\":412,\"loss\":null}\n");
  const std::string body = body_of(render_report(fs, run));
  EXPECT_TRUE(says(body, "step 412: the loss became NaN"));
  EXPECT_TRUE(says(body, "lower train.optimizer.lr"));
  EXPECT_TRUE(says(body, "not a finite number in 1 logged line(s), first at step 412"));
}

// A run was resumed after an interruption; its report went on saying "interrupted at step 100".
TEST(Report, SaysWhenTheSummaryIsOfAnEarlierAttempt) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "mnist", {});
  put_file(fs, run.summary(), R"({"status": "interrupted", "steps": 100})");
  const std::string body = body_of(render_report(fs, run));
  EXPECT_TRUE(says(body, "earlier attempt, which ended as <em>interrupted</em> at step 100"));
  EXPECT_TRUE(says(body, "1,870"));
}

TEST(Report, ListsTheSamplesThatWereLeftOut) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "pictures", {});
  EXPECT_FALSE(says(body_of(render_report(fs, run)), "Samples left out"));
  put_file(fs, run.summary(), R"({"status": "complete", "bad_samples": {"train": [
      {"index": 3, "name": "cat/<3>.jpg", "problem": "ends early"}, 5], "eval": {"name": "odd"}}})");
  const std::string body = body_of(render_report(fs, run));
  EXPECT_EQ(unbalanced(body), "");
  EXPECT_TRUE(says(body, "Samples left out"));
  EXPECT_TRUE(says(body, "cat/&lt;3&gt;.jpg"));
  EXPECT_TRUE(says(body, "ends early"));
}

TEST(Report, IsMadeFromAnySubsetOfTheRecords) {
  for (unsigned present = 0; present < 64; ++present) {
    MemoryFileSystem fs;
    const auto run = write_fixture_run(fs, "/runs", "mnist", {.steps = 40});
    const std::string files[] = {run.recipe_json(), run.recipe_yaml(), run.run_json(),
                                 run.metrics(),     run.evaluation(),  run.summary()};
    for (unsigned i = 0; i < 6; ++i) {
      if (!(present >> i & 1)) fs.remove_file(files[i]);
    }
    EXPECT_EQ(unbalanced(body_of(render_report(fs, run))), "") << present;
  }
}

TEST(Report, SurvivesRecordsCutAtAnyPlaceAndNamesThem) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "mnist", {.steps = 40});
  for (const std::string& path : {run.recipe_json(), run.run_json(), run.evaluation(), run.summary()}) {
    const std::string whole = fs.read_file(path);
    for (const size_t size : {size_t{0}, size_t{1}, whole.size() / 3, whole.size() / 2, whole.find_last_of('}')}) {
      put_file(fs, path, whole.substr(0, size));
      const std::string body = body_of(render_report(fs, run));
      EXPECT_EQ(unbalanced(body), "");
      EXPECT_TRUE(says(body, path + ": ")) << size;
    }
    put_file(fs, path, whole);
  }
  put_file(fs, run.metrics(), "garbage\n" + fs.read_file(run.metrics()));
  EXPECT_TRUE(says(body_of(render_report(fs, run)), "metrics.jsonl:1: is not a line of metrics"));
}

TEST(Report, SurvivesRecordsOfTheWrongShape) {
  for (const char* text :
       {"[]", "5", "null", "{}", R"({"eval": 5, "time": [], "confusion": {}, "classes": 1})",
        R"({"mistakes": [5, {}, {"pixels": "AAAA", "channels": -1}], "attempts": {"a": 1}})",
        R"({"confusion": [[1, 2], [3]], "classes": ["a", "b"]})",
        R"({"confusion": [[1, -2], [3, 4]], "classes": ["a", "b"]})", R"({"confusion": [], "classes": []})",
        R"({"error": "x", "status": "failed", "host": 5})",
        R"({"recipe": {}, "origins": 5, "attempts": [1, [2], {"a": {"b": 3}}], "host": {"memory_bytes": -1}})",
        R"({"time": {"data_s": -1, "forward_s": 0}, "seconds": -5, "steps": -1, "peak_rss_bytes": 1e400})"}) {
    MemoryFileSystem fs;
    const auto run = write_fixture_run(fs, "/runs", "mnist", {.steps = 40});
    for (const std::string& path :
         {run.recipe_json(), run.run_json(), run.evaluation(), run.summary(), run.metrics()}) {
      put_file(fs, path, text);
    }
    EXPECT_EQ(unbalanced(body_of(render_report(fs, run))), "") << text;
  }
}

TEST(Report, FoldsAMatrixOfManyClasses) {
  MemoryFileSystem fs;
  const std::string fifty = render_report(fs, write_fixture_run(fs, "/runs", "fifty", {.steps = 40, .classes = 50}));
  EXPECT_FALSE(says(fifty, "which is wide"));
  const std::string more = render_report(fs, write_fixture_run(fs, "/runs", "more", {.steps = 40, .classes = 51}));
  EXPECT_TRUE(says(more, "The matrix of 51 classes, which is wide"));
}

TEST(Report, OfAFolderThatIsNotThereIsAnError) {
  MemoryFileSystem fs;
  try {
    render_report(fs, record::RunDirectory("/runs/none"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(error.where(), "/runs/none");
  }
}

// A log of each step of a long run. The bound is loose because machines and build types differ.
TEST(Report, OfAHundredThousandLinesIsQuickAndSmall) {
  MemoryFileSystem fs;
  const auto run = write_fixture_run(fs, "/runs", "long", {.steps = 100000, .log_every = 1});
  const auto start = std::chrono::steady_clock::now();
  const std::string page = render_report(fs, run);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", str(spent.count()));
  EXPECT_LT(page.size(), 600u << 10);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(spent.count(), 2.5);
#endif
}

}  // namespace
}  // namespace skytrain::observe
