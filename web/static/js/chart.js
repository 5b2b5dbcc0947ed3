// A small chart: one line over time.
import {h, svg} from './dom.js';
import {compact} from './format.js';

/**
 * chart is a card with the last of some values, and all of them as a line; span names their time, soon
 * when a line appears if there are too few. show writes a value; href leads to more.
 */
export function chart(title, values, span, soon, {show = (v) => compact(v < 10 ? Math.round(10 * v) / 10 : Math.round(v)), href = null} = {}) {
  const now = values.at(-1);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, href ? h('a', {href}, title) : title), h('strong', {class: 'num'}, now === undefined ? '–' : show(now))),
    values.length > 1 ? [line(title, values, span, show), h('div', {class: 'dim', title: 'In ' + span}, 'peak ' + show(Math.max(...values)))]
      : h('p', {class: 'dim'}, 'A line appears within ' + soon + '.'));
}

function line(title, values, span, show) {
  const [width, height] = [300, 64];
  const top = Math.max(1, ...values);
  const step = width / (values.length - 1);
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${(height - 2 - (height - 6) * v / top).toFixed(1)}`);
  return svg('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title + ', ' + span + ', at most ' + show(top)},
    svg('polygon', {points: `0,${height} ${points.join(' ')} ${width},${height}`}), svg('polyline', {points: points.join(' ')}));
}
