// Draws the daily numbers of a table as a line chart. The numbers are read from the table, so both show the same.
"use strict";

(() => {
  const HEIGHT = 280;
  const DAY = 86400; // seconds
  // The axis of dates is that of the PDF report: days, or from 101 days on the first of months or years.
  const MOST_LABELS = 8;
  const DATE_STEPS = [1, 2, 5, 7, 10, 15]; // days
  const LONGEST_IN_DAYS = 100;
  const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240];
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const COUNT_STEPS = [...Array(11).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
  const DAY_STEPS = [1, 2, 7, 14, 28, 56, 112];
  const LOCALE = "en-US"; // as in the rest of the page

  // The columns of the table that have a line, and the days.
  function read(table) {
    const rows = [...table.tBodies[0].rows];
    const columns = [...table.tHead.rows[0].cells].slice(1).map((head, at) => ({
      label: head.textContent.trim(),
      color: head.dataset.line,
      thin: head.hasAttribute("data-thin"),
      area: head.hasAttribute("data-area"),
      values: rows.map((row) => number(row.cells[at + 1])),
      open: rows.findIndex((row) => row.cells[at + 1].hasAttribute("data-open")), // the day that is not over, or -1
    }));
    const time = (row) => row.cells[0].querySelector("time");
    const dated = rows.some(time);
    return {
      dated, // else the days are numbered
      days: rows.map((row) => (dated ? Date.parse(time(row).dateTime) / 1000 : number(row.cells[0]))),
      names: rows.map((row) => row.cells[0].textContent.trim()),
      columns: columns.filter((column) => column.color),
    };
  }

  function number(cell) {
    const text = cell.textContent.replace(/,/g, "").trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  }

  // A line is solid up to the last whole day, then dashed to today, which is not over.
  function lines(data) {
    const found = [];
    for (const column of [...data.columns].reverse()) {
      const { open, values } = column;
      if (open < 0) {
        found.push({ column, values });
        continue;
      }
      found.push({ column, values: values.map((value, at) => (at < open ? value : null)) });
      found.push({ column, open: true, values: values.map((value, at) => (at >= open - 1 ? value : null)) });
    }
    return found;
  }

  function style(line, color, background, last) {
    const width = line.column.thin ? 1 : last > 120 ? 1.5 : 2;
    const shared = { stroke: color, width, points: { show: false } };
    if (!line.open) {
      return line.column.area ? { ...shared, fill: `color-mix(in srgb, ${color} 10%, transparent)` } : shared;
    }
    const hollow = { show: true, size: 7, width: 2, stroke: color, fill: background, filter: () => [line.column.open] };
    return { ...shared, dash: [4, 4], points: hollow };
  }

  function options(data, found, width, css) {
    const text = css.getPropertyValue("--chart-text");
    const grid = { stroke: css.getPropertyValue("--chart-grid"), width: 1 };
    const axis = { stroke: text, grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const background = css.getPropertyValue("--chart-background");
    const color = (line) => css.getPropertyValue(`--chart-${line.column.color}`);
    return {
      width,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      padding: [12, 32, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      scales: { x: { time: data.dated, range: (_, low, high) => [low, high] }, y: { range: (_, low, high) => [0, Math.max(4, high * 1.05)] } },
      axes: [
        { ...axis, grid: { show: false }, space: 70, ...(data.dated ? dateAxis(data.days, width) : { incrs: DAY_STEPS }) },
        { ...axis, size: (_, labels) => 20 + 7 * Math.max(1, ...(labels ?? []).map((label) => label.length)), incrs: COUNT_STEPS, values: (_, splits) => splits.map((value) => value.toLocaleString(LOCALE)) },
      ],
      series: [{}, ...found.map((line) => style(line, color(line), background, data.days.length - 1))],
    };
  }

  function dateAxis(days, width) {
    const labels = dateLabels(days[0], days[days.length - 1], Math.min(MOST_LABELS, Math.floor(width / 90)));
    return { splits: () => labels.map(([at]) => at), values: () => labels.map(([, text]) => text) };
  }

  // The places (in seconds) and texts of at most `most` labels.
  function dateLabels(first, last, most) {
    const [start, end] = [new Date(first * 1000), new Date(last * 1000)];
    const length = (last - first) / DAY + 1;
    if (length > LONGEST_IN_DAYS) return monthLabels(start, end, most);
    const oneYear = start.getUTCFullYear() === end.getUTCFullYear();
    const step = DATE_STEPS.find((each) => (length - 1) / each < most) ?? Math.ceil(length / most);
    const places = Array.from({ length: Math.floor((length - 1) / step) + 1 }, (_, at) => first + at * step * DAY);
    return places.map((at) => {
      const day = new Date(at * 1000);
      const text = `${day.getUTCDate()} ${MONTHS[day.getUTCMonth()]}`;
      return [at, oneYear ? text : `${text} ${day.getUTCFullYear()}`];
    });
  }

  function monthLabels(start, end, most) {
    const month = (date) => date.getUTCFullYear() * 12 + date.getUTCMonth();
    const [low, high] = [month(start) + (start.getUTCDate() > 1 ? 1 : 0), month(end)];
    const starts = (step) => {
      const lowest = Math.ceil(low / step) * step;
      return Array.from({ length: Math.max(0, Math.floor((high - lowest) / step) + 1) }, (_, at) => lowest + at * step);
    };
    const step = MONTH_STEPS.find((each) => starts(each).length <= most) ?? MONTH_STEPS[MONTH_STEPS.length - 1];
    return starts(step).map((number) => {
      const year = Math.floor(number / 12);
      return [Date.UTC(year, number % 12) / 1000, step % 12 ? `${MONTHS[number % 12]} ${year}` : `${year}`];
    });
  }

  // The legend shows the numbers of the day under the pointer.
  function legend(data, place) {
    const list = document.createElement("p");
    list.className = "chart-legend";
    const values = data.columns.map((column) => {
      const item = list.appendChild(document.createElement("span"));
      const swatch = item.appendChild(document.createElement("i"));
      swatch.className = `chart-swatch chart-${column.color}`;
      item.append(`${column.label} `);
      return item.appendChild(document.createElement("strong"));
    });
    const day = list.appendChild(document.createElement("span"));
    place.before(list);
    return (at) => {
      day.textContent = at === null ? "" : data.names[at];
      values.forEach((value, each) => {
        const number = at === null ? null : data.columns[each].values[at];
        value.textContent = number === null ? "" : number.toLocaleString(LOCALE);
      });
    };
  }

  function draw(figure) {
    const data = read(figure.querySelector("table"));
    const place = figure.querySelector(".chart-area");
    if (data.days.length < 2) return;
    const found = lines(data);
    const show = legend(data, place);
    let plot;
    const redraw = () => {
      plot?.destroy();
      const settings = options(data, found, place.clientWidth, getComputedStyle(figure));
      settings.hooks = { setCursor: [(drawn) => show(drawn.cursor.idx ?? null)] };
      plot = new uPlot(settings, [data.days, ...found.map((line) => line.values)], place);
    };
    new ResizeObserver(() => plot?.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    // On paper, charts have light colours. Their width follows the style for print.
    addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; redraw(); });
    addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; redraw(); });
    redraw();
  }

  document.querySelectorAll("figure.chart").forEach(draw);
})();
