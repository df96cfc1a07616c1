#include "skytrain/observe/report.h"

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/observe/assets.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

struct Part {
  const char *id, *title;
  std::string html;
};

// Parts that stand beside each other where the page is wide enough; a part alone takes the whole width.
std::string columns(const std::string& left, const std::string& right) {
  return left + right == "" ? "" : "<div class=\"columns\">\n" + left + right + "</div>\n";
}

// Only this page's own style sheet and scripts, by their hashes; pictures only from inside the page; nothing else.
std::string content_security_policy() {
  return str("default-src 'none'; img-src data:; style-src 'sha256-", assets::report_css_sha256(),
             "'; script-src 'sha256-", assets::chart_js_sha256(), "' 'sha256-", assets::report_js_sha256(),
             "'; base-uri 'none'; form-action 'none'");
}

std::string navigation(const std::vector<Part>& parts) {
  std::string links;
  for (const Part& part : parts) {
    if (!part.html.empty()) links += str("<a href=\"#", part.id, "\">", part.title, "</a>\n");
  }
  return "<nav aria-label=\"Sections\">\n" + links + "</nav>\n";
}

std::string footer(const Records& records) {
  const std::string version = text(records.summary, "version");
  return str("<footer>\n<p>Made by SkyTrain", version.empty() ? "" : " " + escape(version, 40),
             " from the records in the run's folder; this page needs no other file.</p>\n<details><summary>Licence of "
             "the chart library</summary>\n<pre tabindex=\"0\">",
             escape_lines(assets::chart_js_licence()), "</pre></details>\n</footer>\n");
}

}  // namespace

std::string section(const std::string& id, const std::string& title, const std::string& content) {
  if (content.empty()) return "";
  return str("<section id=\"", id, "\" aria-labelledby=\"", id, "-heading\">\n<h2 id=\"", id, "-heading\">", title,
             "</h2>\n", content, "</section>\n");
}

std::string render_report(const FileSystem& fs, const record::RunDirectory& run) {
  const auto info = fs.stat(run.path());
  if (!info || info->type != FileInfo::Type::kDirectory) {
    throw Error(ErrorKind::kUsage, run.path(), "there is no run in this folder",
                "give the folder of one run: runs/<name>/<UTC time>");
  }
  const Records records = load_records(fs, run);
  const Part curves{"curves", "Curves", curves_section(records)};
  const Part result{"result", "Result", result_section(records)};
  const Part time{"time", "Time", time_section(records)};
  const Part memory{"memory", "Memory", memory_section(records)};
  const Part confusion{"confusion", "Confusion matrix", confusion_section(records)};
  const Part classes{"classes", "Classes", classes_section(records)};
  const Part mistakes{"mistakes", "Mistakes", mistakes_section(records)};
  const Part bad_samples{"bad-samples", "Samples left out", bad_samples_section(records)};
  const Part environment{"environment", "Environment", environment_section(records)};
  const Part recipe{"recipe", "Recipe", recipe_section(records)};

  const std::string resources = time.html + memory.html;
  std::string page =
      str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
          "http-equiv=\"Content-Security-Policy\" content=\"",
          content_security_policy(),
          "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
          "name=\"color-scheme\" content=\"light dark\">\n<title>",
          escape(run_name(records), 200), " · SkyTrain</title>\n<style>", assets::report_css(),
          "</style>\n</head>\n<body>\n<main>\n", headline(records),
          navigation({curves, result, time, memory, confusion, classes, mistakes, bad_samples, environment, recipe}));
  page += curves.html + columns(result.html, resources.empty() ? "" : "<div>\n" + resources + "</div>\n");
  page += columns(confusion.html, classes.html) + mistakes.html + bad_samples.html + environment.html + recipe.html;
  page += "</main>\n" + footer(records);
  page +=
      str("<script type=\"application/json\" id=\"curves-data\">", script_json(curves_data(records)), "</script>\n");
  page += str("<script>", assets::chart_js(), "</script>\n<script>", assets::report_js(), "</script>\n");
  return page + "</body>\n</html>\n";
}

void write_report(FileSystem& fs, const record::RunDirectory& run) {
  write_file_atomically(fs, run.report(), render_report(fs, run));
}

}  // namespace skytrain::observe
