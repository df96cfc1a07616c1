// What the model got wrong: the most frequent mistakes, and samples as pictures.

#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/observe/confusion.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/png_data_uri.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

constexpr size_t kMaxPictures = 24, kFrequentMistakes = 10;

int64_t whole(const OrderedJson& object, std::string_view key) {
  const OrderedJson& value = child(object, key);
  return value.is_number_integer() && value.get<double>() < 1e15 ? value.get<int64_t>() : -1;
}

std::string class_name(const OrderedJson& classes, int64_t index) {
  const bool named = classes.is_array() && index >= 0 && static_cast<size_t>(index) < classes.size() &&
                     classes[static_cast<size_t>(index)].is_string();
  return named ? classes[static_cast<size_t>(index)].get<std::string>() : str("class ", index);
}

std::string figure(const OrderedJson& mistake, const OrderedJson& classes) {
  const std::string truth = class_name(classes, whole(mistake, "label"));
  const std::string predicted = class_name(classes, whole(mistake, "predicted"));
  std::string name = text(mistake, "name");
  if (name.empty()) name = str("sample ", whole(mistake, "index"));

  Picture picture{whole(mistake, "channels"), whole(mistake, "height"), whole(mistake, "width"), {}};
  std::string problem = "holds pixels that are not base64";
  std::optional<std::string> uri;
  if (auto pixels = decode_base64(text(mistake, "pixels"))) {
    picture.pixels = std::move(*pixels);
    uri = png_data_uri(picture, &problem);
  }
  const std::string image = uri ? str("<img src=\"", *uri, "\" alt=\"", escape(name, 120), ": ", escape(truth, 80),
                                      ", predicted as ", escape(predicted, 80), "\">")
                                : "<p class=\"no-picture\">The picture " + escape(problem) + ".</p>";
  return str(
      "<figure class=\"mistake\">", image, "<figcaption><strong>", escape(truth, 80),
      "</strong> <span class=\"sr\">predicted as</span><span aria-hidden=\"true\">→</span> <strong class=\"wrong\">",
      escape(predicted, 80), "</strong> <span>", percent(number(mistake, "probability"), 1),
      "</span><span class=\"name\">", escape(name, 120), "</span></figcaption></figure>\n");
}

std::string pictures(const Records& records) {
  const OrderedJson& mistakes = child(records.evaluation, "mistakes");
  if (!mistakes.is_array() || mistakes.empty()) return "";
  const OrderedJson& classes = child(records.evaluation, "classes");
  std::string figures;
  for (size_t i = 0; i < mistakes.size() && i < kMaxPictures; ++i) figures += figure(mistakes[i], classes);
  return "<p>True class → predicted class, and the probability that the model gave to its answer; the most confident "
         "first.</p>\n<div class=\"mistakes\">\n" +
         figures + "</div>\n";
}

std::string frequent_mistakes(const Confusion& confusion) {
  if (confusion.size() == 0) return "";
  const auto results = class_results(confusion);
  const auto mistakes = most_frequent_mistakes(confusion, kFrequentMistakes);
  if (mistakes.empty()) return "";
  Table table("The most frequent mistakes", "ttnn", {"True class", "Predicted", "Samples", "Share of the class"});
  for (const Mistake& mistake : mistakes) {
    table.row({escape(confusion.classes[mistake.truth], 80), escape(confusion.classes[mistake.predicted], 80),
               count(static_cast<double>(mistake.count)),
               percent(static_cast<double>(mistake.count) / static_cast<double>(results[mistake.truth].samples), 1)});
  }
  return table.html();
}

}  // namespace

std::string mistakes_section(const Records& records) {
  const std::string samples = pictures(records);
  const std::string table = frequent_mistakes(read_confusion(records.evaluation));
  if (samples.empty() && table.empty() && read_confusion(records.evaluation).size() > 0) {
    return section("mistakes", "Mistakes", "<p>Every sample was predicted right.</p>\n");
  }
  if (samples.empty()) return section("mistakes", "Mistakes", table);
  return section(
      "mistakes", "Mistakes",
      "<div class=\"beside\">\n<div class=\"wide\">\n" + samples + "</div>\n<div>" + table + "</div>\n</div>\n");
}

}  // namespace skytrain::observe
