// Znodes as they were at a moment, which the archive has: the slider above the tree.
import * as api from './api.js';
import {button, debounce, empty, h, replace, select} from './dom.js';

const spans = [[3600, 'the last hour'], [86400, 'the last day'], [7 * 86400, 'the last week'], [30 * 86400, 'the last 30 days']];
const steps = 1000;

/** noArchive says how to switch on what the server lacks. */
export function noArchive() {
  return empty('No archive keeps earlier versions', 'Write gozkd.archive.url=file:///backups/zk (or a bucket: s3://…) into zoo.cfg and restart the server. ' +
    'From then on this page has each version of each znode, with who made it.');
}

/** moment returns a moment, a zxid or a time, as a person reads it. */
export function moment(at) {
  return String(at).startsWith('0x') ? 'zxid ' + at : new Date(at).toLocaleString('en-GB');
}

/** timeBar lets a person choose a moment, and begins with at. onchange gets it as text, null for now. */
export function timeBar(at, onchange) {
  const age = at && !at.startsWith('0x') ? (Date.now() - Date.parse(at)) / 1000 : 0;
  let span = (spans.find(([seconds]) => seconds >= age) || spans.at(-1))[0];
  const shown = h('strong', {class: 'num', role: 'status'});
  const slider = h('input', {type: 'range', min: 0, max: steps, value: Math.round(steps * (1 - age / span)), 'aria-label': 'Moment', oninput: () => {
    draw(chosen());
    changed();
  }});
  const chosen = () => (Number(slider.value) === steps ? null : new Date(Date.now() - 1000 * span * (1 - slider.value / steps)).toISOString());
  const changed = debounce(400, () => onchange(chosen()));
  const draw = (value) => {
    shown.textContent = value ? 'as of ' + moment(value) : 'now';
    slider.setAttribute('aria-valuetext', shown.textContent);
    now.hidden = !value;
  };
  const now = button('Now', () => {
    slider.value = steps;
    draw(null);
    onchange(null);
  }, {kind: 'quiet', title: 'Back to the present'});
  const choose = select(spans.map(([seconds, text]) => [String(seconds), text]), String(span), (value) => {
    span = Number(value);
    slider.value = steps;
    draw(null);
    onchange(null);
  });
  choose.setAttribute('aria-label', 'How far back the slider goes');
  const element = h('div', {class: 'time-bar'}, h('div', {class: 'row'}, shown, h('span', {class: 'spring'}), now, choose), slider);
  draw(at);
  api.get('history', {path: '/', limit: 1}, {quiet: true}).catch((error) => error.status === 501 && replace(element, noArchive()));
  return element;
}
