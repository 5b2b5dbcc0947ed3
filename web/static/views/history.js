// Earlier versions of a znode, and what changed below one, from the archive.
import {many} from '../js/apps.js';
import {badge, button, empty, h, problem, replace, select} from '../js/dom.js';
import {bytes, normal, time, when, znodeHref, znodeLink} from '../js/format.js';
import {table} from '../js/list.js';
import {noArchive} from '../js/past.js';
import {dataDiff, dataText, page, sessionLink} from './list.js';
import {momentsView} from './moments.js';

// How far back the changes of a subtree go; '' is for the versions of the znode alone.
const spans = [['', 'this znode'], ['3600', 'everything below, last hour'], ['86400', 'everything below, last day'], ['604800', 'everything below, last week'], ['between', 'everything below, two moments']];

export default function (ctx) {
  const path = ctx.params.get('path') || '';
  const [from, to] = [ctx.params.get('from'), ctx.params.get('to')];
  const below = from ? 'between' : Number(ctx.params.get('below')) > 0 ? ctx.params.get('below') : '';
  const before = ctx.params.get('before');
  const input = h('input', {value: path, placeholder: '/app/config', spellcheck: 'false', 'aria-label': 'Path of a znode'});
  const [first, last] = [momentInput(from, 'From'), momentInput(to, 'To')];
  const query = () => (span.value !== 'between' ? {below: span.value} : {from: first.moment() || ago(3600), to: last.moment()});
  const open = () => ctx.go(address(normal(input.value), query()));
  const span = select(spans, below, () => path && open(), {'aria-label': 'What to show'});
  const form = h('form', {class: 'row', onsubmit: (event) => {
    event.preventDefault();
    open();
  }}, input, span, from && [first.element, last.element], h('button', {type: 'submit', class: 'button'}, 'Show'));
  if (from && path) {
    return momentsView(ctx, form, {path, from, to});
  }
  const since = path && below && ago(below);
  const read = (next) => ctx.api.get('history', {path, since: since || null, before: next, limit: below ? 100 : 20});
  return page({title: 'History', head: form, load: async () => (path ? read(before).catch(without) : null), draw: (first) => {
    if (first?.without) {
      return noArchive();
    }
    if (!first) {
      return h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, 'Which znode?'), h('p', null, 'Type a path above. An archive of the log has its earlier versions, and what changed below it.'));
    }
    const list = below ? changes() : versions(path);
    const more = h('div');
    const add = (answer) => {
      list.add(answer.versions);
      replace(more, answer.next && button('Older ' + list.what, async (event) => {
        event.currentTarget.disabled = true;
        try {
          add(await read(answer.next));
        } catch (error) {
          replace(more, problem(error, () => add({versions: [], next: answer.next})));
        }
      }));
    };
    add(first);
    return [h('div', {class: 'row'}, znodeLink(first.path), h('span', {class: 'dim'}, 'archived up to ', time(first.until)), list.note,
      first.hidden ? badge('some ' + list.what + ' were not readable for you', 'warn') : null,
      before && h('a', {href: address(path)}, 'Newer versions'), below && first.versions.some((v) => v.path) && h('a', {href: address(path, {from: since, to: new Date(first.until).toISOString()})}, 'Compare begin and end')),
    first.versions.length === 0 && !first.next ? empty('No ' + list.what, 'The archive has none. New changes appear after some seconds.') : null,
    list.element, more];
  }});
}

function address(path, query) {
  return '#/history?' + new URLSearchParams(Object.entries({path, ...query}).filter(([name, value]) => value || name === 'below'));
}

// ago returns the time this many seconds ago.
function ago(seconds) {
  return new Date(Date.now() - 1000 * seconds).toISOString();
}

// momentInput lets a person choose a time: {element, moment()}. What they leave as it is keeps its milliseconds.
function momentInput(at, label) {
  const ms = Date.parse(at);
  const local = ms ? new Date(ms - 60_000 * new Date(ms).getTimezoneOffset()).toISOString().slice(0, 19) : '';
  const element = h('input', {type: 'datetime-local', step: 1, value: local, 'aria-label': label});
  return {element, moment: () => (element.value === local ? at : element.value && new Date(element.value).toISOString())};
}

// versions shows the versions of a znode, and the difference of two of them.
function versions(path) {
  const all = [];
  const list = h('div', {class: 'stack'});
  const chosen = {from: 1, to: 0};
  const between = h('div', {'aria-live': 'polite'});
  const compare = () => replace(between, all.length > 1 && h('section', {class: 'card'},
    h('header', null, h('h3', null, 'Difference'), h('span', {class: 'mono dim'}, all[chosen.from].zxid + ' to ' + all[chosen.to].zxid)),
    dataDiff(all[chosen.from], all[chosen.to])));
  const choose = (side, i) => h('label', {class: 'row'}, h('input', {type: 'radio', name: 'history-' + side, checked: chosen[side] === i, onchange: () => {
    chosen[side] = i;
    compare();
  }}), side === 'from' ? 'from' : 'to');
  return {what: 'versions', element: [between, list], add(next) {
    for (const v of next) {
      const i = all.push(v) - 1;
      list.append(versionCard(path, v, [choose('from', i), choose('to', i)]));
    }
    compare();
  }};
}

// changes shows what happened to the znodes of a subtree, each with a link to the difference that it made.
function changes() {
  let rows = [];
  const note = h('span', {class: 'dim', role: 'status'});
  const shown = table({caption: 'Changes', columns: [
    {key: 'time', title: 'When', value: (v) => BigInt(v.zxid), cell: (v) => when(v.time)},
    {key: 'change', title: 'Kind', cell: (v) => badge(...kinds[v.change])},
    {key: 'path', title: 'Znode', cell: (v) => v.path && znodeLink(v.path)},
    {key: 'session', title: 'By', value: (v) => [v.session, ...(v.by || [])].join(' '), cell: (v) => v.session && [sessionLink(v.session), /^(close|expire)Session/.test(v.op) && ' ended', (v.by || []).map((who) => [' ', badge(who)])]},
    {key: 'difference', title: '', value: () => '', cell: (v) => v.path && h('a', {class: 'nowrap', href: address(v.path, {before: '0x' + (BigInt(v.zxid) + 1n).toString(16)})}, 'What changed')},
  ], emptyTitle: 'Nothing changed'});
  return {what: 'changes', note, element: shown.element, add(next) {
    rows = rows.concat(next);
    const real = rows.filter((v) => v.path);
    note.textContent = many(real.length, 'change') + ' of ' + many(new Set(real.map((v) => v.path)).size, 'znode');
    shown.set(rows);
  }};
}

// without is shown instead of the error of a server that has no archive.
function without(error) {
  if (error.status !== 501) {
    throw error;
  }
  return {without: true};
}

const kinds = {created: ['created', 'good'], changed: ['changed', ''], acl: ['ACL', ''], deleted: ['deleted', 'bad'], earlier: ['the archive begins here', ''], gap: ['the archive has a gap here', 'warn']};

function versionCard(path, v, choices) {
  return h('section', {class: 'card'},
    h('header', null, h('span', null, when(v.time)), badge(...kinds[v.change]), h('span', {class: 'mono dim'}, v.zxid),
      v.acl && h('span', {class: 'dim'}, 'version ' + v.version + ', ' + bytes(v.dataLength)), choices,
      v.acl && h('a', {href: znodeHref(path) + '?at=' + v.zxid}, 'The tree then')),
    h('div', {class: 'row'}, v.op && h('span', {class: 'mono dim'}, v.op), v.session && sessionLink(v.session), (v.by || []).map((who) => badge(who))),
    v.data && h('details', null, h('summary', null, 'Data'), h('pre', {class: 'code short'}, dataText(v))));
}
