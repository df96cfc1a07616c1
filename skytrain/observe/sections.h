// skytrain/observe/sections.h
//
// The parts of a report, each from the records to HTML. A part with nothing to tell is "".

#pragma once
#include <string>

#include "skytrain/observe/records.h"

namespace skytrain::observe {

// section_headline.cc
std::string run_name(const Records& records);
std::string headline(const Records& records);  // name, status, the five figures, what went wrong

// section_curves.cc
std::string curves_section(const Records& records);
OrderedJson curves_data(const Records& records);  // for report.js: {"loss": {"train": {"x": […], "y": […]}, …}, …}

// section_result.cc
std::string result_section(const Records& records);

// section_resources.cc
std::string time_section(const Records& records);
std::string memory_section(const Records& records);

// section_classes.cc
std::string confusion_section(const Records& records);
std::string classes_section(const Records& records);

// section_mistakes.cc
std::string mistakes_section(const Records& records);

// section_bad_samples.cc
std::string bad_samples_section(const Records& records);

// section_environment.cc
std::string environment_section(const Records& records);
std::string recipe_section(const Records& records);

// <section id="…"><h2>title</h2> … </section>; "" when the content is.
std::string section(const std::string& id, const std::string& title, const std::string& content);

}  // namespace skytrain::observe
