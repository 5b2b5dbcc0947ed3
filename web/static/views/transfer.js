// Export and import of subtrees, as JSON lines.
import {badge, button, field, h, replace, select} from '../js/dom.js';
import {bytes, count, normal, znodeLink} from '../js/format.js';

export default function (ctx) {
  const root = ctx.params.get('root') || '/';
  const from = h('input', {value: root, spellcheck: 'false'});
  const to = h('input', {value: root === '/' ? '' : root, placeholder: '/app', spellcheck: 'false', required: true});
  const file = h('input', {type: 'file', accept: '.jsonl,.json,.ndjson,application/x-ndjson', required: true});
  const withoutACL = h('input', {type: 'checkbox'});
  let existing = 'refuse';
  const size = h('div', {class: 'row', 'aria-live': 'polite'});
  const result = h('div', {class: 'row', 'aria-live': 'polite'});
  const look = async () => {
    try {
      const s = await ctx.api.get('subtree', {root: normal(from.value)});
      replace(size, badge(count(s.znodes) + (s.truncated ? ' or more' : '') + ' znodes', 'accent'), badge(bytes(s.bytes)),
        s.ephemerals ? badge(count(s.ephemerals) + ' ephemeral', '', 'An import leaves them out') : null, s.denied ? badge(count(s.denied) + ' not readable', 'warn') : null);
    } catch (error) {
      replace(size, badge('failed', 'bad'), ' ' + error.message);
    }
  };
  const save = (event) => {
    event.preventDefault();
    h('a', {href: ctx.api.url('ui/api/export', {root: normal(from.value)}), download: ''}).click();
  };
  let importing = false;
  const load = async (event) => {
    event.preventDefault();
    if (importing || existing === 'replace' && !await ctx.confirm('Replace znodes of ' + normal(to.value) + '?',
      'The data and ACLs of znodes that exist are overwritten, whatever their versions.', 'Replace', 'danger')) {
      return;
    }
    importing = true;
    replace(result, badge('importing …'));
    try {
      const response = await ctx.api.request('POST', 'ui/api/import', {query: {root: normal(to.value), existing, noacl: withoutACL.checked || null},
        body: file.files[0], headers: {'Content-Type': 'application/x-ndjson'}});
      const r = await response.json();
      replace(result, badge(count(r.created) + ' created', 'good'), badge(count(r.changed) + ' changed'), r.kept ? badge(count(r.kept) + ' kept') : null,
        r.ephemeralsLeftOut ? badge(count(r.ephemeralsLeftOut) + ' ephemeral left out') : null, znodeLink(normal(to.value)));
    } catch (error) {
      replace(result, h('span', {role: 'alert'}, badge('failed', 'bad'), ' ', error.message));
    }
    importing = false;
  };
  const reason = ctx.mayNot('write', 'Importing needs the role write');
  return {title: 'Import & export', element: h('div', {class: 'page'}, h('div', {class: 'page-head'}, h('h1', null, 'Import & export')),
    h('p', {class: 'dim'}, 'A file of JSON lines, the same as of gozkd’s shell: kinds, data and ACLs of all znodes below a path.'),
    h('div', {class: 'halves'},
      h('form', {class: 'card stack', onsubmit: save}, h('header', null, h('h2', null, 'Export')), field('Subtree', from), size,
        h('div', {class: 'row'}, button('Count the znodes', look), h('button', {type: 'submit', class: 'button primary'}, 'Download'))),
      h('form', {class: 'card stack', onsubmit: load}, h('header', null, h('h2', null, 'Import')), field('Into', to), field('File', file),
        field('Znodes that exist', select([['refuse', 'stop with an error'], ['keep', 'keep them'], ['replace', 'replace data and ACL']], existing, (v) => {
          existing = v;
        })),
        h('label', {class: 'check'}, withoutACL, ' without ACLs: everybody may do everything'), result,
        h('div', {class: 'row'}, h('button', {type: 'submit', class: 'button primary', disabled: Boolean(reason), title: reason}, 'Import'), reason && h('span', {class: 'dim'}, reason)))))};
}
