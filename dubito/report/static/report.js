// Draws the charts from the data in the page, in the reader's colour scheme.
"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const SYMBOLS = ["circle", "diamond", "triangle", "rect"];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const look = () => ({
    ink: css("--ink"),
    faint: css("--line"),
    paper: css("--paper"),
    colours: ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5"].map(css),
  });

  // Colour and symbol of a series by its index.
  const drawnAs = (place) => [place % 6, place % 4];

  const LINES = 3; // lines of a name next to a chart; the tooltip and the table have the whole name
  const pen = document.createElement("canvas").getContext("2d");
  const font = () => getComputedStyle(document.body).fontFamily;
  const wide = (text) => {
    pen.font = `12px ${font()}`;
    return pen.measureText(text).width;
  };
  const labelWidth = (spec, box) =>
    Math.ceil(Math.min(300, box.clientWidth * 0.36, Math.max(60, ...spec.names.map(wide))));
  const paired = (spec) => spec.series.length > 1; // several series per row
  const rowHeight = (spec, box) =>
    spec.names.reduce(
      (most, name) => Math.max(most, 15 * broken(name, labelWidth(spec, box)).split("\n").length + 10),
      Math.max(30, 9 * spec.series.length + 18),
    );

  function tooltip(title, rows) {
    const box = document.createElement("div");
    for (const line of [title, ...rows]) {
      const row = document.createElement("div");
      row.textContent = line;
      box.append(row);
    }
    box.firstChild.style.fontWeight = "600";
    return box;
  }

  // Formats as in the tables, with enough digits that the ends of a narrow interval differ.
  function percent([value, low, high]) {
    if (low === undefined) return value.toFixed(1);
    const digits = [1, 2].find((few) => low.toFixed(few) !== high.toFixed(few)) ?? 3;
    return `${value.toFixed(digits)} [${low.toFixed(digits)}, ${high.toFixed(digits)}]`;
  }

  function describe(spec, row) {
    const known = spec.series.filter((series) => series.points[row]);
    return tooltip(spec.names[row], known.map((series) => `${series.name}: ${percent(series.points[row])}`));
  }

  function base(spec, style) {
    return {
      animation: false,
      textStyle: { color: style.ink, fontFamily: font(), fontSize: 13 },
      color: style.colours,
      legend: spec.series.length > 1
        ? {
          top: 0,
          left: 0,
          type: "plain",
          textStyle: { color: style.ink },
          data: spec.series.map((s, i) => ({ name: s.name, icon: SYMBOLS[drawnAs(i)[1]] })),
          itemHeight: 10,
          itemWidth: 12,
        }
        : { show: false },
      tooltip: {
        trigger: "item",
        confine: true,
        backgroundColor: style.paper,
        borderColor: style.faint,
        textStyle: { color: style.ink },
      },
    };
  }

  // Height of the legend: its names wrap where the page is narrow.
  function legendHeight(spec, box) {
    if (!paired(spec)) return 0;
    let [rows, left] = [1, box.clientWidth];
    for (const { name } of spec.series) {
      const entry = wide(name) + 30;
      if (entry > left && left < box.clientWidth) [rows, left] = [rows + 1, box.clientWidth];
      left -= entry;
    }
    return 4 + 22 * rows;
  }

  function axes(spec, style, box, value) {
    const width = labelWidth(spec, box);
    return {
      grid: { left: width + 12, right: 16, top: 8 + legendHeight(spec, box), bottom: 28 },
      xAxis: {
        type: "value",
        axisLabel: { color: style.ink, hideOverlap: true },
        splitLine: { lineStyle: { color: style.faint } },
        ...value,
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: spec.names,
        axisTick: { show: false },
        axisLine: { lineStyle: { color: style.faint } },
        axisLabel: {
          color: style.ink,
          interval: 0,
          fontSize: 12,
          lineHeight: 15,
          formatter: (name) => broken(name, width),
        },
      },
    };
  }

  // Wraps a name to fit next to a chart. Each name of a pair starts a new line.
  const broken = (name, width) => name.split(/ (?=against )/).map((part) => inLines(part, width)).join("\n");

  // Words longer than a line are broken after punctuation, or otherwise anywhere.
  function inLines(name, width) {
    const lines = [""];
    const fits = (text) => wide(text.trimEnd()) <= width;
    const add = (part) => {
      if (fits(lines.at(-1) + part)) lines[lines.length - 1] += part;
      else lines.push(part);
    };
    const inParts = (
      word,
    ) => (fits(word) ? [word] : word.split(/(?<=[-/:@_])/).flatMap((part) => (fits(part) ? [part] : [...part])));
    name.split(/(?<=\s)/).flatMap(inParts).forEach(add);
    const shown = lines.filter(Boolean);
    if (shown.length > LINES) shown.splice(LINES - 1, shown.length, `${shown[LINES - 1].slice(0, -1)}…`);
    return shown.map((line) => line.trimEnd()).join("\n");
  }

  function intervals(spec, style, box) {
    const shift = (series) => (paired(spec) ? (series - (spec.series.length - 1) / 2) * 9 : 0);
    const series = spec.series.map((one, place) => ({
      type: "custom",
      name: one.name,
      clip: false,
      encode: { x: [0, 2, 3], y: 1 },
      data: one.points.map((point, row) => (point ? [point[0], row, point[1] ?? point[0], point[2] ?? point[0]] : null))
        .filter(Boolean),
      itemStyle: { color: style.colours[drawnAs(place)[0]] },
      tooltip: { formatter: (p) => describe(spec, p.value[1]) },
      renderItem: (_, api) => {
        const [x, y] = api.coord([api.value(0), api.value(1)]);
        const [from] = api.coord([api.value(2), api.value(1)]);
        const [to] = api.coord([api.value(3), api.value(1)]);
        const [colour, sign] = [style.colours[drawnAs(place)[0]], drawnAs(place)[1]];
        const line = (x1, y1, x2, y2, lineWidth) => ({
          type: "line",
          shape: { x1, y1, x2, y2 },
          style: { stroke: colour, lineWidth },
        });
        const h = y + shift(place);
        return {
          type: "group",
          children: [
            line(from, h, to, h, 2),
            line(from, h - 4, from, h + 4, 2),
            line(to, h - 4, to, h + 4, 2),
            symbol(sign, x, h, colour),
          ],
        };
      },
    }));
    if (spec.zero) {
      series[0].markLine = {
        symbol: "none",
        silent: true,
        data: [{ xAxis: 0 }],
        lineStyle: { color: style.ink, type: "solid" },
        label: { show: false },
      };
    }
    const lowest = Math.min(0, ...spec.series.flatMap((one) => one.points.filter(Boolean).flat()));
    return {
      ...base(spec, style),
      ...axes(spec, style, box, { scale: lowest < 0, min: lowest < 0 ? undefined : 0 }),
      series,
    };
  }

  function symbol(place, x, y, colour) {
    const r = 5;
    const style = { fill: colour };
    if (place === 0) return { type: "circle", shape: { cx: x, cy: y, r }, style };
    const points = [
      null,
      [[x, y - r - 1], [x + r + 1, y], [x, y + r + 1], [x - r - 1, y]],
      [[x, y - r], [x + r, y + r], [x - r, y + r]],
      [[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]],
    ][place];
    return { type: "polygon", shape: { points }, style };
  }

  function stacked(spec, style, box) {
    style.colours = [2, 0, 1, 5].map((place) => style.colours[place]);
    const series = spec.series.map((one, place) => ({
      type: "bar",
      stack: "all",
      name: one.name,
      barMaxWidth: 22,
      itemStyle: { color: style.colours[place], borderColor: style.paper, borderWidth: 1 },
      data: one.points.map((point) => (point ? point[0] : 0)),
      tooltip: { formatter: (p) => describe(spec, p.dataIndex) },
    }));
    const option = base(spec, style);
    option.legend.data = spec.series.map((one) => ({ name: one.name }));
    return {
      ...option,
      ...axes(spec, style, box, { max: 100 }),
      series,
      aria: { enabled: true, label: { enabled: false }, decal: { show: true } },
    };
  }

  function calibration(spec, style) {
    const line = (points, colour) => ({
      type: "line",
      silent: true,
      symbol: "none",
      data: points,
      lineStyle: { color: colour, type: "dashed", width: 1 },
      tooltip: { show: false },
    });
    const series = spec.series.map((one, place) => ({
      type: "custom",
      name: one.name,
      encode: { x: 0, y: [1, 2, 3] },
      itemStyle: { color: style.colours[place % 6] },
      data: one.points.map((point, row) => [one.x[row], ...point]),
      tooltip: {
        formatter: (p) =>
          tooltip(one.name, [`stated: ${p.value[0].toFixed(1)}`, `dishonest: ${percent(p.value.slice(1))}`]),
      },
      renderItem: (_, api) => {
        const [x, y] = api.coord([api.value(0), api.value(1)]);
        const [, low] = api.coord([api.value(0), api.value(2)]);
        const [, high] = api.coord([api.value(0), api.value(3)]);
        const h = x + (place - (spec.series.length - 1) / 2) * 6;
        const colour = style.colours[place % 6];
        return {
          type: "group",
          children: [{
            type: "line",
            shape: { x1: h, y1: low, x2: h, y2: high },
            style: { stroke: colour, lineWidth: 2 },
          }, symbol(place % 4, h, y, colour)],
        };
      },
    }));
    const axis = {
      type: "value",
      min: 0,
      max: 100,
      axisLabel: { color: style.ink },
      splitLine: { lineStyle: { color: style.faint } },
    };
    return {
      ...base(spec, style),
      grid: { left: 44, right: 20, top: spec.series.length > 1 ? 54 : 10, bottom: 28 },
      xAxis: axis,
      yAxis: axis,
      series: [...series, line([[0, 0], [100, 100]], style.ink)],
    };
  }

  function scatter(spec, style, box) {
    let taken = []; // positions of labels, so that overlapping ones are moved down
    const free = (x, y, right) => {
      while (taken.some((other) => other.right === right && Math.abs(other.x - x) < 90 && Math.abs(other.y - y) < 13)) {
        y += 3;
      }
      taken.push({ x, y, right });
      return y;
    };
    const most = box.clientWidth < 480 ? 18 : 30; // characters of a name
    const short = (name) => (name.length > most ? `${[...name].slice(0, most - 1).join("")}…` : name);
    const grid = { left: 52, right: 24, top: spec.series.length > 1 ? 54 : 14, bottom: 28 };
    const series = spec.series.map((one, place) => ({
      type: "custom",
      name: one.name,
      encode: { x: 0, y: [1, 2, 3] },
      itemStyle: { color: style.colours[drawnAs(place)[0]] },
      data: one.points.map((point, row) => (point ? [...point, row] : null)).filter(Boolean),
      tooltip: {
        formatter: (p) => tooltip(spec.names[p.value[4]], [percent(p.value.slice(1, 4)), `${p.value[0]} ${spec.axis}`]),
      },
      renderItem: (params, api) => {
        if (place === 0 && params.dataIndexInside === 0) taken = [];
        const [x, y] = api.coord([api.value(0), api.value(1)]);
        const [, low] = api.coord([api.value(0), api.value(2)]);
        const [, high] = api.coord([api.value(0), api.value(3)]);
        const [colour, sign] = [style.colours[drawnAs(place)[0]], drawnAs(place)[1]];
        const right = x < params.coordSys.x + params.coordSys.width / 2;
        const label = {
          text: short(spec.names[api.value(4)]),
          x: right ? x + 9 : x - 9,
          y: free(x, y - 6, right),
          align: right ? "left" : "right",
          fill: style.ink,
          fontSize: 12,
        };
        const bar = {
          type: "line",
          shape: { x1: x, y1: low, x2: x, y2: high },
          style: { stroke: colour, lineWidth: 2 },
        };
        return {
          type: "group",
          children: [bar, symbol(sign, x, y, colour), { type: "text", style: label, silent: true }],
        };
      },
    }));
    const axis = {
      type: "value",
      axisLabel: { color: style.ink, hideOverlap: true },
      splitLine: { lineStyle: { color: style.faint } },
    };
    if (spec.curves) Object.assign(axis, { min: 0, max: 100 });
    const curves = (spec.curves ?? []).map(([name, points]) => ({
      type: "line",
      silent: true,
      symbol: "none",
      data: points,
      lineStyle: { color: style.ink, type: "dashed", width: 1, opacity: 0.5 },
      tooltip: { show: false },
      markPoint: { // the name, near the start of the curve
        symbol: "circle",
        symbolSize: 1,
        silent: true,
        data: [{ coord: points[3 * points.length >> 3] }],
        label: { formatter: name, position: "top", color: style.ink },
      },
    }));
    const whole = { min: 0, ...axis };
    return {
      ...base(spec, style),
      grid,
      xAxis: whole,
      yAxis: { scale: true, ...axis },
      series: [...series, ...curves],
    };
  }

  const KINDS = { intervals, stacked, calibration, scatter };

  function draw(figure) {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const box = figure.querySelector(".drawing");
    const room = 44 + legendHeight(spec, box); // for the legend and the numbers of the axis
    box.style.height = ["calibration", "scatter"].includes(spec.kind)
      ? "340px"
      : `${spec.names.length * rowHeight(spec, box) + room}px`;
    const there = echarts.getInstanceByDom(box);
    if (there) there.dispose();
    echarts.init(box, null, { renderer: "svg" }).setOption(KINDS[spec.kind](spec, look(), box));
  }

  const figures = [...document.querySelectorAll("[data-chart]")];
  const drawAll = () => figures.forEach(draw);
  let width = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth !== width) {
      width = document.body.clientWidth;
      drawAll();
    }
  }).observe(document.body);
  dark.addEventListener("change", drawAll);
})();
