// Sessions: their clients, and how to end them.
import {badge, button, h} from '../js/dom.js';
import {filterBox, table} from '../js/list.js';
import {client, count, duration, time} from '../js/format.js';
import {endSession, mayEnd, more, page} from './list.js';

export default function (ctx) {
  let text = ctx.params.get('filter') || '';
  let shown = null;
  const end = (s) => endSession(ctx, s, () => view.reload());
  const columns = [
    {key: 'id', title: 'Session and client', value: (s) => s.id + ' ' + (s.address || ''), cell: (s) => [h('div', {class: 'mono nowrap'}, s.id),
      h('div', {class: 'nowrap'}, s.address ? [h('span', {class: 'dim'}, client(s.address)), ' ', s.tls && badge('TLS', 'good')]
        : h('span', {class: 'dim'}, s.connected ? 'in the process' : 'not on this server'))]},
    {key: 'identities', title: 'Identities', hide: 'small', value: (s) => (s.identities || []).join(', ')},
    {key: 'timeoutMs', title: 'Timeout', align: 'right', cell: (s) => duration(s.timeoutMs)},
    {key: 'heard', title: 'Heard', align: 'right', cell: (s) => time(s.heard)},
    {key: 'ephemerals', title: 'Ephemerals', align: 'right'},
    {key: 'watches', title: 'Watches', align: 'right', value: (s) => s.watches || 0,
      cell: (s) => s.watches ? h('a', {href: '#/watches?session=' + s.id}, count(s.watches)) : '0'},
    {key: 'avgLatencyMs', title: 'Latency', align: 'right', hide: 'small', value: (s) => s.avgLatencyMs || 0, cell: (s) => s.connected ? duration(s.avgLatencyMs || 0) : '–'},
    {key: 'end', title: '', cell: (s) => button('End', () => end(s), {kind: 'quiet', reason: mayEnd(ctx)})},
  ];
  const view = page({
    title: 'Sessions', interval: 5000,
    head: filterBox((t) => {
      text = t;
      ctx.setParams({filter: t});
      shown?.filter(t);
    }, {placeholder: 'Filter by id, client or identity', value: text}),
    load: () => ctx.api.get('sessions', {limit: 5000}),
    draw: (data, keep) => {
      shown = keep('sessions', () => table({columns, caption: 'Sessions', sort: 'id', emptyTitle: 'No sessions', emptyText: 'No client has connected.'}));
      shown.set(data.sessions);
      shown.filter(text);
      return [h('div', {class: 'row'}, badge(count(data.total) + ' sessions in the ensemble'),
        badge(count(data.sessions.filter((s) => s.connected).length) + ' on this server', 'accent'), more(data.truncated)), shown.element];
    },
  });
  return view;
}
