// Sessions: their clients, how to end them, and why they ended.
import {badge, button, debounce, h} from '../js/dom.js';
import {filterBox, table} from '../js/list.js';
import {client, count, duration, time, when, znodeLink} from '../js/format.js';
import {endSession, mayEnd, more, page} from './list.js';

export default function (ctx) {
  let text = ctx.params.get('filter') || '';
  let shown = null;
  const search = debounce(300, () => view.reload()); // the server filters the ended ones, because it has more than are shown
  const end = (s) => endSession(ctx, s, () => view.reload());
  const columns = [
    {key: 'id', title: 'Session and client', value: (s) => s.id + ' ' + (s.address || ''), cell: (s) => [h('div', {class: 'mono nowrap'}, s.id),
      h('div', {class: 'nowrap'}, s.address ? [h('span', {class: 'dim'}, client(s.address)), ' ', s.tls && badge('TLS', 'good')]
        : h('span', {class: 'dim'}, s.connected ? 'in the process' : 'not on this server'))]},
    {key: 'identities', title: 'Identities', hide: 'small', value: (s) => (s.identities || []).join(', ')},
    {key: 'timeoutMs', title: 'Timeout', align: 'right', cell: (s) => duration(s.timeoutMs)},
    {key: 'heard', title: 'Last heard', align: 'right', cell: (s) => time(s.heard)},
    {key: 'ephemerals', title: 'Ephemerals', align: 'right'},
    {key: 'watches', title: 'Watches', align: 'right', value: (s) => s.watches || 0,
      cell: (s) => s.watches ? h('a', {href: '#/watches?session=' + s.id}, count(s.watches)) : '0'},
    {key: 'avgLatencyMs', title: 'Latency', align: 'right', hide: 'medium', value: (s) => s.avgLatencyMs || 0, cell: (s) => s.connected ? duration(s.avgLatencyMs || 0) : '–'},
    {key: 'end', title: '', align: 'right', cell: (s) => button('End', () => end(s), {kind: 'quiet', reason: mayEnd(ctx)})},
  ];
  const view = page({
    title: 'Sessions', interval: 5000,
    head: filterBox((t) => {
      text = t;
      ctx.setParams({filter: t});
      shown?.filter(t);
      search();
    }, {placeholder: 'Filter by id, client or identity', value: text}),
    load: () => Promise.all([ctx.api.get('sessions', {limit: 5000}), ctx.api.get('ended', {limit: 200, filter: text.trim() || null})]),
    draw: ([data, past], keep) => {
      shown = keep('sessions', () => table({columns, caption: 'Sessions', sort: 'id', emptyTitle: 'No sessions', emptyText: 'No client has connected.'}));
      shown.set(data.sessions);
      shown.filter(text);
      return [h('div', {class: 'row'}, badge(count(data.total) + (data.total === 1 ? ' session' : ' sessions') + ' in the ensemble'),
        badge(count(data.sessions.filter((s) => s.connected).length) + ' on this server', 'accent'), more(data.truncated)), shown.element, ended(past, keep)];
    },
  });
  return view;
}

function ended(past, keep) {
  const list = keep('ended', () => table({columns: [
    {key: 'ended_ms', title: 'When', cell: (s) => when(s.ended_ms)},
    {key: 'session', title: 'Session and client', cell: (s) => [h('div', {class: 'mono nowrap'}, s.session), h('div', {class: 'nowrap dim'}, s.client ? client(s.client.address) : '')]},
    {key: 'story', title: 'Why', cell: (s) => [h('div', null, sentence(s)), elsewhere(s) && h('div', {class: 'dim'}, 'The members know more together: ', h('code', null, 'gozkd why ' + s.session)), s.ephemerals && h('div', {class: 'dim'}, 'deleted ',
      s.ephemerals.map((p) => [znodeLink(p), ' ']), s.more_ephemerals > 0 && 'and ' + count(s.more_ephemerals) + ' more')]},
  ], caption: 'Ended sessions', sort: 'ended_ms', descending: true, emptyTitle: 'No ended sessions', emptyText: 'This server remembers no end that fits.'}));
  list.set(past.ended);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'Ended recently'), more(past.truncated),
    h('span', {class: 'dim'}, 'As far as this server knows. Others may know more: ', h('code', null, 'gozkd why SESSION'))), list.element);
}

// elsewhere reports whether another server knows the cause. The explorer asks none for it.
function elsewhere(s) {
  return s.cause === 'unknown' && /: ask (it|that server)/.test(s.story);
}

/** sentence is the story without its subject, which the other columns show. */
function sentence(s) {
  return s.story.replace(/^session .*? at \d{4}-\S+Z: /, '');
}
