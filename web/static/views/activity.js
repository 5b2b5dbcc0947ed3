// What the server does now: rates, latencies, hot paths and clients.
import {chart} from '../js/chart.js';
import {badge, h} from '../js/dom.js';
import {table} from '../js/list.js';
import {client, count, duration, when, znodeLink} from '../js/format.js';
import {page, sessionLink} from './list.js';

const kept = 120;

export default function (ctx) {
  const rates = {in: [], out: [], waiting: [], connections: []};
  let before = null;
  const push = (list, value) => {
    list.push(value);
    list.splice(0, list.length - kept);
  };
  return page({title: 'Activity', interval: 1000, load: () => ctx.api.get('activity'), draw: (a, keep) => {
    if (before && a.time > before.time) {
      const seconds = (a.time - before.time) / 1000;
      push(rates.in, Math.max(0, a.received - before.received) / seconds);
      push(rates.out, Math.max(0, a.sent - before.sent) / seconds);
    }
    push(rates.waiting, a.outstanding);
    push(rates.connections, a.connections);
    before = a;
    return [
      h('div', {class: 'grid'}, chart('Packets received per second', rates.in, 'The last two minutes', '3 s'), chart('Packets sent per second', rates.out, 'The last two minutes', '3 s'),
        chart('Writes under way', rates.waiting, 'The last two minutes', '3 s'), chart('Connections', rates.connections, 'The last two minutes', '3 s')),
      h('div', {class: 'row'}, badge('latency ' + duration(a.latencyMs.avg) + ' on average'), badge('at most ' + duration(a.latencyMs.max), '', 'Since the start, or the word srst'),
        badge(count(a.sessions) + ' sessions'), badge(count(a.znodes) + ' znodes')),
      a.hot ? hot(a.hot, keep) : h('p', {class: 'dim'}, 'Hot paths and clients are for administrators.'),
      a.slow && slow(a.slow, keep),
      times('Requests', 'From the arrival of a request to its reply', a.operations, keep), times('Stages of a write', 'Where writes spend their time', a.stages, keep),
    ];
  }});
}

function hot(spots, keep) {
  const rate = (key, title) => ({key, title, align: 'right', cell: (x) => x[key].toFixed(1)});
  const total = (x) => x.reads + x.writes;
  const bar = {key: 'share', title: '', hide: 'small', class: 'share', value: total, cell: (x) => h('div', {class: 'bar'},
    h('div', {style: {width: 100 * x.share + '%'}}))};
  const shares = (all = []) => all.map((x) => ({...x, share: total(x) / Math.max(1e-9, ...all.map(total))}));
  const paths = keep('paths', () => table({columns: [{key: 'path', title: 'Path', cell: (p) => znodeLink(p.path)}, rate('reads', 'Reads'), rate('writes', 'Writes'), bar],
    caption: 'Hot paths', emptyTitle: 'No requests', emptyText: 'Nothing was read or written in the last seconds.'}));
  const clients = keep('clients', () => table({columns: [{key: 'session', title: 'Session', cell: (c) => sessionLink(c.session)}, {key: 'address', title: 'Client', hide: 'small', cell: (c) => client(c.address)},
    rate('reads', 'Reads'), rate('writes', 'Writes'), bar], caption: 'Hot clients', emptyTitle: 'No requests', emptyText: 'No client has sent a request in the last seconds.'}));
  paths.set(shares(spots.paths));
  clients.set(shares(spots.clients));
  return h('div', {class: 'halves'}, [['Hot paths', paths], ['Hot clients', clients]].map(([title, list]) => h('section', {class: 'card'},
    h('header', null, h('h2', null, title), h('span', {class: 'dim'}, 'per second, last ' + spots.window_s + ' s')), list.element)));
}

function times(title, hint, values, keep) {
  const rows = Object.entries(values || {}).map(([name, v]) => ({name, ...v})).filter((v) => v.count > 0).sort((a, b) => b.count - a.count);
  if (rows.length === 0) {
    return null;
  }
  const ms = (key, text) => ({key, title: text, align: 'right', cell: (v) => duration(v[key])});
  const list = keep(title, () => table({columns: [{key: 'name', title: 'Name', class: 'mono'}, {key: 'count', title: 'Count', align: 'right', cell: (v) => count(v.count)},
    ms('p50', 'p50'), ms('p99', 'p99'), ms('max', 'max')], caption: title}));
  list.set(rows);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, title), h('span', {class: 'dim'}, hint)), list.element);
}

function slow({fromMs, requests}, keep) {
  const empty = fromMs ? ['No slow requests', 'All requests were answered within ' + duration(fromMs) + '.']
    : ['Not recorded', 'gozkd.slowRequestThresholdMs says from which time on a request is slow.'];
  const list = keep('slow ' + fromMs, () => table({columns: [{key: 'time', title: 'When', cell: (r) => when(r.time)}, {key: 'tookMs', title: 'Took', align: 'right', cell: (r) => duration(r.tookMs)},
    {key: 'op', title: 'Request', class: 'mono'}, {key: 'path', title: 'Path', cell: (r) => (r.path ? znodeLink(r.path) : '')},
    {key: 'session', title: 'Session', hide: 'small', cell: (r) => sessionLink(r.session)}, {key: 'client', title: 'Client', class: 'mono', hide: 'small'}],
  caption: 'Slow requests', emptyTitle: empty[0], emptyText: empty[1]}));
  list.set(requests);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'Slow requests'), h('span', {class: 'dim'}, fromMs ? 'of ' + duration(fromMs) + ' and more' : '')), list.element);
}
