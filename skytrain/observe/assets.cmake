# What report.html carries: its style sheet and script, and Chart.js 3 (Debian: libjs-chart.js).
find_file(SKYTRAIN_CHART_JS chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH
  DOC "Chart.js 3, minified, as one file")
if(NOT SKYTRAIN_CHART_JS)
  message(FATAL_ERROR "Chart.js was not found: apt-get install libjs-chart.js, or pass "
                      "-DSKYTRAIN_CHART_JS=<path of chart.min.js, version 3>")
endif()
file(READ ${SKYTRAIN_CHART_JS} SKYTRAIN_CHART_JS_HEAD LIMIT 200)
if(NOT SKYTRAIN_CHART_JS_HEAD MATCHES "Chart\\.js v3\\.")
  message(FATAL_ERROR "${SKYTRAIN_CHART_JS} is not Chart.js 3: its first lines must say \"Chart.js v3.\"")
endif()

set(observe_assets ${CMAKE_SOURCE_DIR}/skytrain/observe/assets)
skytrain_embed(skytrain_observe NAMESPACE skytrain::observe::assets FILES
  chart_js=${SKYTRAIN_CHART_JS}
  chart_js_licence=${observe_assets}/chart_js_licence.txt
  report_css=${observe_assets}/report.css
  report_js=${observe_assets}/report.js)
