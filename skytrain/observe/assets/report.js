// Draws the curves of a report from its #curves-data, in the colours of its style sheet.
(function () {
  'use strict';
  document.documentElement.classList.add('scripted');
  const data = JSON.parse(document.getElementById('curves-data').textContent);
  const charts = [];

  const number = (value) => Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4)
    ? value.toExponential(2).replace(/\.?0+e/, 'e')
    : value.toLocaleString('en', {maximumSignificantDigits: 5});
  const share = (value) => (value * 100).toLocaleString('en', {maximumFractionDigits: 2}) + ' %';

  const kinds = {
    loss: {show: number, series: [['train', 'training', 'faint'], ['smooth', 'training, smoothed', '1'], ['eval', 'evaluation', '2', true]]},
    top1: {show: share, series: [['eval', 'top-1 accuracy', '2', true]]},
    lr: {show: number, fromZero: true, series: [['train', 'learning rate', '1']]},
    rate: {show: number, series: [['train', 'samples a second', 'faint'], ['smooth', 'smoothed', '1']]},
  };

  const points = (series) => series.x.map((x, i) => ({x: x, y: series.y[i]}));

  function datasets(name) {
    const curves = data[name];
    return kinds[name].series.filter(([key]) => curves[key] && curves[key].x.length > 0)
      .map(([key, label, colour, dots]) => {
        const length = curves[key].x.length;
        return {label: label, data: points(curves[key]), colour: colour === 'faint' && !curves.smooth ? '1' : colour,
                borderWidth: colour === 'faint' && curves.smooth ? 1 : 2, pointRadius: length < 3 || (dots && length <= 60) ? 3 : 0, pointHitRadius: 8};
      });
  }

  // The colours of the moment: light, dark or paper.
  function colour({data, options}) {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue('--' + name).trim();
    for (const set of data.datasets) {
      set.borderColor = set.backgroundColor = set.pointBorderColor = set.pointBackgroundColor = value('series-' + set.colour);
    }
    for (const scale of Object.values(options.scales)) {
      scale.ticks.color = scale.title.color = value('soft');
      scale.grid.color = scale.grid.borderColor = value('grid');
    }
    options.plugins.legend.labels.color = value('soft');
  }

  function repaint() {
    for (const chart of charts) {
      chart.resize();
      colour(chart.config);
      chart.update('none');
    }
  }

  function axis(title, show) {
    return {type: 'linear', beginAtZero: title === 'step', title: {display: title !== '', text: title}, grid: {},
            ticks: {callback: show, maxRotation: 0, autoSkipPadding: 16}};
  }

  function draw(canvas) {
    const kind = kinds[canvas.dataset.chart];
    const sets = datasets(canvas.dataset.chart);
    const single = canvas.dataset.chart === 'top1' && sets[0] && sets[0].data.length === 1;
    const config = {
      type: 'line',
      data: {datasets: sets},
      options: {
        animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {x: axis('step', (value) => Number.isInteger(value) ? value.toLocaleString('en') : ''), y: {...axis('', kind.show), beginAtZero: kind.fromZero, ...(single ? {suggestedMin: 0, suggestedMax: 1} : {})}},
        plugins: {
          legend: {display: sets.length > 1, labels: {boxWidth: 14, boxHeight: 2}},
          tooltip: {callbacks: {title: (items) => items.length ? 'step ' + items[0].parsed.x.toLocaleString('en') : '',
                                label: (item) => item.dataset.label + ': ' + kind.show(item.parsed.y)}},
        },
      },
    };
    colour(config);
    const chart = new Chart(canvas, config);
    charts.push(chart);
    if (canvas.dataset.chart === 'loss' && sets.every((set) => set.data.every((point) => point.y > 0))) addScaleSwitch(canvas, chart);
  }

  function addScaleSwitch(canvas, chart) {
    const label = document.createElement('label'), box = document.createElement('input');
    label.className = 'scale';
    box.type = 'checkbox';
    label.append(box, 'logarithmic');
    box.addEventListener('change', () => {
      chart.options.scales.y.type = box.checked ? 'logarithmic' : 'linear';
      chart.update('none');
    });
    canvas.closest('figure').prepend(label);
  }

  document.querySelectorAll('canvas[data-chart]').forEach(draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);

  // Paper shows everything: charts at the paper's width and colours, and what is folded away.
  let folded = [];
  matchMedia('print').addEventListener('change', repaint);
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('main details:not([open], .unprinted)')];
    folded.forEach((element) => { element.open = true; });
    repaint();
  });
  addEventListener('afterprint', () => {
    folded.forEach((element) => { element.open = false; });
    repaint();
  });
})();
