// A small chart: one line over time.
import {h, svg} from './dom.js';
import {compact} from './format.js';

/**
 * chart is a card with the last of some values, and all of them as a line; span names their time, soon
 * when a line appears if there are too few. show writes a value; href leads to more. Values that stay
 * above half of their peak are drawn from the lowest of them, as a line: from 0 they would be a block.
 */
export function chart(title, values, span, soon, {show = (v) => compact(v < 10 ? Math.round(10 * v) / 10 : Math.round(v)), href = null} = {}) {
  const now = values.at(-1);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, href ? h('a', {href}, title) : title), h('strong', {class: 'num'}, now === undefined ? '–' : show(now))),
    values.length > 1 ? [line(title, values, span, show), h('div', {class: 'dim', title: 'In ' + span}, range(values, show))]
      : h('p', {class: 'dim'}, 'A line appears within ' + soon + '.'));
}

function bounds(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return {low, high, level: low > high / 2};
}

// range says between which values a line is.
function range(values, show) {
  const {low, high, level} = bounds(values);
  return low === high ? 'constant' : level ? show(low) + ' to ' + show(high) : 'peak ' + show(high);
}

function line(title, values, span, show) {
  const [width, height] = [300, 64];
  const {low, high, level} = bounds(values);
  const [bottom, top] = low === high && low > 0 ? [low - 1, low + 1] : [level ? low : 0, Math.max(high, level ? low : 1)];
  const step = width / (values.length - 1);
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${(height - 2 - (height - 6) * (v - bottom) / (top - bottom)).toFixed(1)}`);
  return svg('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title + ', ' + span + ', ' + range(values, show)},
    !level && svg('polygon', {points: `0,${height} ${points.join(' ')} ${width},${height}`}), svg('polyline', {points: points.join(' ')}));
}
