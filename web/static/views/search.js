// Search by name and content. Results appear while the server walks.
import {badge, button, field, h, replace} from '../js/dom.js';
import {table} from '../js/list.js';
import {bytes, count, normal, when, znodeLink} from '../js/format.js';
import {flow} from './list.js';

/** reasons says why a walk is over. */
export const reasons = {complete: ['complete', 'good'], limit: ['stopped at the bound of znodes or results', 'warn'], time: ['stopped: took too long', 'warn']};

export default function (ctx) {
  const p = ctx.params;
  const input = (name, placeholder, value) => h('input', {name, placeholder, value: value ?? p.get(name) ?? '', spellcheck: 'false', autocomplete: 'off'});
  const [name, content, root] = [input('name', 'config, or app-*'), input('content', 'text in the data'), input('root', '/', p.get('root') || '/')];
  const regexp = h('input', {type: 'checkbox', checked: p.has('regexp')});
  const status = h('div', {class: 'row', 'aria-live': 'polite'});
  let rows = [];
  let stop = null;
  let frame = 0;
  const list = table({caption: 'Results', emptyTitle: '', columns: [
    {key: 'path', title: 'Path', cell: (m) => [znodeLink(m.path), m.excerpt && h('div', {class: 'dim mono excerpt'}, m.excerpt)]},
    {key: 'dataLength', title: 'Size', align: 'right', cell: (m) => bytes(m.dataLength)}, {key: 'numChildren', title: 'Children', align: 'right', hide: 'small'},
    {key: 'mtime', title: 'Changed', align: 'right', cell: (m) => when(m.mtime)},
    {key: 'session', title: '', hide: 'small', cell: (m) => m.session ? badge('ephemeral', '', 'Session ' + m.session) : ''}]});
  list.element.hidden = true;
  const draw = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      list.set(rows);
      list.element.hidden = rows.length === 0;
    });
  };
  const progress = (x, end) => replace(status, badge(count(x.found) + ' found', 'accent'), badge(count(x.visited) + ' visited'),
    x.denied ? badge(count(x.denied) + ' not readable', 'warn') : null, end ? badge(...(reasons[x.reason] || [x.reason, 'bad']))
      : [button('Stop', () => finish('stopped'), {kind: 'quiet'}), h('span', {class: 'dim mono excerpt'}, x.path || '')]);
  const finish = (text) => {
    stop?.();
    stop = null;
    if (text) {
      replace(status, badge(rows.length + ' found', 'accent'), badge(text, 'warn'));
    }
  };
  const start = (event) => {
    event?.preventDefault();
    finish();
    if (!name.value && !content.value) {
      name.focus();
      return;
    }
    const query = {root: normal(root.value), name: name.value || null, content: content.value || null, regexp: regexp.checked || null};
    ctx.setParams({...query, regexp: regexp.checked ? '1' : null});
    rows = [];
    draw();
    progress({found: 0, visited: 0});
    stop = flow(ctx.api, 'ui/api/search', query, {
      match: (m) => {
        rows.push(m);
        draw();
      },
      progress: (x) => progress(x), end: (x) => progress(x, true),
      failed: (error) => replace(status, h('span', {role: 'alert'}, badge('failed', 'bad'), ' ', error.message)),
    });
  };
  const element = h('div', {class: 'page'}, h('div', {class: 'page-head'}, h('h1', null, 'Search')),
    h('form', {class: 'card search-form', onsubmit: start}, field('Name', name), field('Content', content), field('Below', root),
      h('label', {class: 'check'}, regexp, ' regular expressions'), h('button', {type: 'submit', class: 'button primary'}, 'Search')), status, list.element);
  if (p.get('name') || p.get('content')) {
    start();
  }
  return {title: 'Search', element, close: () => finish(), keys: {Escape: () => finish('stopped')}};
}
