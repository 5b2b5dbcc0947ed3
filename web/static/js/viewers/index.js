// Chooses a viewer for data: by looking at the data, unless a person has chosen one for the place.
import {button, copy, debounce, download, h, loading, remember, replace, select, setting} from '../dom.js';
import {base, bytes as size, parent} from '../format.js';
import {hex, protobuf} from './binary.js';
import {json} from './json.js';
import {clickhouse, curator, kafka} from './known.js';
import {base64, gzip, snappy, zlib, zstd} from './packed.js';
import {decode, properties, text, xml, yaml} from './text.js';

/**
 * A viewer has an id, a label and score(input): how well it fits, from 0 (not at all) to 1. It either
 * shows the input (render) or has data inside (unpack). An input is {data, text, path}; text is null
 * for bytes that are not text.
 */
export const viewers = [text, json, yaml, properties, xml, hex, base64, gzip, zlib, zstd, snappy, curator, kafka, clickhouse, protobuf];

const maxNesting = 4;
const leastFind = 200; // bytes of data in which a person wants to find something

/** sniff returns the viewers that fit, the best one first. */
export function sniff(input) {
  return viewers.map((viewer) => ({viewer, score: viewer.score(input)})).filter((s) => s.score > 0)
    .sort((a, b) => b.score - a.score).map((s) => s.viewer);
}

// What a person chose is kept for all znodes with the same parent, and applies below it.
// outer names the viewers around data inside of data.
function chosen(place, outer) {
  const all = setting('viewers', {});
  for (let at = place; ; at = parent(at)) {
    if (all[at + outer] || at === '/') {
      return all[at + outer] || null;
    }
  }
}

function choose(place, id) {
  const all = setting('viewers', {});
  delete all[place];
  if (id) {
    all[place] = id;
  }
  const entries = Object.entries(all);
  remember('viewers', Object.fromEntries(entries.slice(-200)));
}

const maxFound = 1000;

// ranges returns where a text occurs in what an element shows, also across its elements, whatever the case.
function ranges(element, text) {
  const nodes = [];
  let all = '';
  for (const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT); walker.nextNode();) {
    nodes.push({node: walker.currentNode, from: all.length});
    all += walker.currentNode.data;
  }
  const literal = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi');
  const at = (offset) => nodes.findLast((n) => n.from <= offset);
  return text === '' ? [] : [...all.matchAll(literal)].slice(0, maxFound).map(({index}) => {
    const [first, last] = [at(index), at(index + text.length - 1)];
    const range = new Range();
    range.setStart(first.node, index - first.from);
    range.setEnd(last.node, index + text.length - last.from);
    return range;
  });
}

// finder is an input that marks what is found in the data; Enter goes to the next place.
function finder(body) {
  const note = h('span', {class: 'dim num', role: 'status'});
  let [found, now] = [[], 0];
  const mark = () => {
    CSS.highlights?.set('found', new Highlight(...found));
    CSS.highlights?.set('found-now', new Highlight(...found.slice(now, now + 1)));
    note.textContent = input.value ? (found.length ? now + 1 : 0) + ' of ' + found.length + (found.length === maxFound ? '+' : '') : '';
    found[now]?.startContainer.parentElement.scrollIntoView({block: 'nearest'});
  };
  const look = () => {
    body.querySelector('.unfold:not([hidden])')?.click(); // what is folded is not there
    [found, now] = [ranges(body.querySelector('.code') || body, input.value), 0];
    mark();
  };
  const input = h('input', {type: 'search', class: 'find', placeholder: 'Find', 'aria-label': 'Find in the data', oninput: debounce(150, look), onkeydown: (event) => {
    if (event.key === 'Enter' && found.length) {
      now = (now + (event.shiftKey ? found.length - 1 : 1)) % found.length;
      mark();
    }
  }});
  return h('span', {class: 'row'}, note, input);
}

/**
 * viewData shows data with a choice of viewers. actions are further buttons for the head. Viewers of
 * data inside of data have a depth and no actions.
 */
export function viewData(path, data, {actions = [], depth = 0, outer = ''} = {}) {
  const input = {data, text: decode(data), path};
  const place = parent(path);
  const fits = sniff(input).filter((v) => depth < maxNesting || v.render);
  const own = chosen(place, outer);
  let viewer = fits.find((v) => v.id === own) || fits[0];
  const body = h('div', {class: 'viewer'});
  const wrap = button('Wrap', () => {
    remember('wrap', !setting('wrap', true));
    draw();
  }, {kind: 'quiet', title: 'Break long lines'});
  const find = finder(body);
  const draw = async () => {
    wrap.setAttribute('aria-pressed', String(setting('wrap', true)));
    body.classList.toggle('wrap', setting('wrap', true));
    if (data.length === 0) {
      replace(body, depth === 0 ? null : h('p', {class: 'dim'}, 'Nothing inside.'));
      return;
    }
    try {
      if (viewer.render) {
        replace(body, viewer.render(input));
        wrap.hidden = !body.querySelector(':scope > .code:not(.hex)');
        find.hidden = wrap.hidden || data.length < leastFind;
        return;
      }
      wrap.hidden = find.hidden = true;
      replace(body, loading(2));
      const inside = await viewer.unpack(data);
      replace(body, viewData(path, inside, {depth: depth + 1, outer: outer + '|' + viewer.id}));
    } catch (error) {
      replace(body, h('p', {class: 'dialog-error'}, viewer.label + ': ' + error.message), hex.render(input));
    }
  };
  const options = [['', (fits[0]?.label || '') + ' (auto)'], ...fits.map((v) => [v.id, v.label])];
  const choice = data.length > 0 && select(options, own && viewer.id === own ? own : '', (id) => {
    choose(place + outer, id);
    viewer = fits.find((v) => v.id === id) || fits[0];
    draw();
  }, {'aria-label': 'Viewer', class: 'compact', title: 'How to show the data. The choice is kept for the znodes below ' + parent(path) + '.'});
  draw();
  return h('section', {class: depth > 0 ? 'nested' : 'data', 'aria-label': depth > 0 ? 'Data inside' : 'Data'},
    h('header', {class: 'data-head'}, h(depth > 0 ? 'h3' : 'h2', null, depth > 0 ? 'Inside' : 'Data'),
      data.length > 0 ? h('span', {class: 'dim bytes'}, size(data.length)) : h('span', {class: 'dim'}, 'none'), choice, h('span', {class: 'spring'}),
      data.length > 0 && [find, wrap, input.text !== null && button('', () => copy(input.text), {kind: 'quiet', iconName: 'copy', title: 'Copy the data'}),
        button('', () => download(base(path) === '/' ? 'root' : base(path), data), {kind: 'quiet', iconName: 'download', title: 'Download the data'})], actions),
    body);
}
