// A small chart: one line over time.
import {h, svg} from './dom.js';
import {compact} from './format.js';

/**
 * chart is a card with the last of some values, and all of them as a line; span names their time. show
 * writes a value; href leads to more.
 */
export function chart(title, values, span, {show = (v) => compact(Math.round(v)), href = null} = {}) {
  const [width, height] = [300, 64];
  const top = Math.max(1, ...values);
  const step = width / (Math.max(20, values.length) - 1);
  const points = values.map((v, i) => `${(width - (values.length - 1 - i) * step).toFixed(1)},${(height - 2 - (height - 6) * v / top).toFixed(1)}`);
  const now = values.at(-1);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, href ? h('a', {href}, title) : title), h('strong', {class: 'num'}, now === undefined ? '–' : show(now))),
    svg('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title + ', last ' + span + ', at most ' + show(top)},
      points.length > 1 && svg('polygon', {points: `${points[0].split(',')[0]},${height} ${points.join(' ')} ${width},${height}`}), svg('polyline', {points: points.join(' ')})),
    h('div', {class: 'dim', title: 'In ' + span}, values.length > 1 ? 'peak ' + show(Math.max(...values)) : 'measuring …'));
}
