// Locks and elections: their queues, and which sessions wait for which.
import {many} from '../js/apps.js';
import {badge, button, h, replace, svg} from '../js/dom.js';
import {filterBox} from '../js/list.js';
import {base, count, when, znodeLink} from '../js/format.js';
import {endSession, mayEnd, more, page, sessionLink} from './list.js';

const maxPlaces = 12;
const maxGraph = 24;
const maxLoop = 6; // sessions of a cycle that are drawn; the list has all

export default function (ctx) {
  let text = ctx.params.get('filter') || '';
  let last = null;
  const list = h('div', {class: 'stack'});
  const drawList = () => {
    const wanted = last.locks.filter((l) => !text || JSON.stringify(l).toLowerCase().includes(text.toLowerCase()));
    replace(list, wanted.slice(0, 100).map((l) => lockCard(l, last.cycles)), wanted.length > 100 && h('p', {class: 'dim'}, (wanted.length - 100) + ' more: narrow the filter.'),
      wanted.length === 0 && h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, last.locks.length ? 'No match' : 'No locks'),
        h('p', null, 'Locks and elections of Curator, kazoo, gozkd’s recipes, Solr, ClickHouse and ZooKeeper’s own recipes appear here while a client contends.')));
  };
  const view = page({
    title: 'Locks and elections', interval: 4000,
    head: filterBox((t) => {
      text = t;
      ctx.setParams({filter: t});
      drawList();
    }, {placeholder: 'Filter by path, session, client', value: text}),
    load: () => ctx.api.get('locks', {root: ctx.params.get('root') || '/'}),
    draw: (data) => {
      last = data;
      drawList();
      const known = people(data.locks);
      const elections = data.locks.filter((l) => l.kind === 'election').length;
      const waiting = data.locks.reduce((n, l) => n + l.queue.filter((c) => !c.holds).length, 0);
      return [
        h('div', {class: 'row'}, badge(many(data.locks.length - elections, 'lock')), badge(many(elections, 'election')), badge(count(waiting) + ' waiting', waiting ? 'accent' : ''),
          badge(data.cycles.length ? data.cycles.length + (data.cycles.length === 1 ? ' deadlock' : ' deadlocks') : 'no deadlocks', data.cycles.length ? 'bad' : 'good', 'Sessions that wait for each other across locks; elections keep nobody from going on'),
          data.denied ? badge(data.denied + ' not readable', 'warn', 'The ACLs of these directories do not let you read them') : null, more(data.truncated)),
        data.cycles.map((c) => cycleCard(c, known, ctx, () => view.reload())), graphCard(data, known), list,
      ];
    },
  });
  return view;
}

/** people returns what is known of each session: {name, address}. A name is what a contender wrote into its znode. */
function people(locks) {
  const known = new Map();
  for (const c of locks.flatMap((l) => l.queue).filter((c) => c.session)) {
    const p = known.get(c.session) || known.set(c.session, {name: '', address: ''}).get(c.session);
    p.name ||= c.text || '';
    p.address ||= c.address && c.address !== 'pipe' ? c.address : '';
  }
  return {of: (id) => known.get(id) || {name: '', address: ''}, label: (id) => known.get(id)?.name || known.get(id)?.address || '…' + id.slice(-8)};
}

function cycleCard(cycle, known, ctx, reload) {
  const who = (id) => h('span', null, h('b', null, known.label(id)), ' ', sessionLink(id));
  return h('section', {class: 'card cycle', role: 'alert'},
    h('header', null, h('h2', null, 'Deadlock: these sessions wait for each other'), badge(cycle.waits.length + ' sessions', 'bad')),
    h('p', null, 'Unless a client gives up, they wait forever. A client with several threads may let go all the same.'),
    cycle.waits.length <= maxLoop ? loop(cycle, known) : null,
    h('ol', {class: 'loop-list'}, cycle.waits.map((w) => h('li', {class: 'row'},
      h('span', null, who(w.from), ' waits for ', who(w.to), ' at ', znodeLink(w.lock), w.any ? ' (or for another holder, who waits too)' : ''),
      button('End this session', () => endSession(ctx, {id: w.from, address: known.of(w.from).address}, reload), {kind: 'quiet', reason: mayEnd(ctx)})))));
}

/** loop draws a cycle: its sessions on a ring, an arrow from each to the one that it waits for, numbered as the list is. */
function loop(cycle, known) {
  const n = cycle.waits.length;
  const [width, height, rx, ry] = n === 2 ? [330, 96, 96, 20] : [330, 210, 96, 66];
  const at = (i) => {
    const angle = 2 * Math.PI * i / n - (n === 2 ? Math.PI : Math.PI / 2);
    return [width / 2 + rx * Math.cos(angle), height / 2 + ry * Math.sin(angle)];
  };
  return svg('svg', {class: 'graph loop', viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'The sessions in a ring, each waiting for the next'}, markers('loop'),
    cycle.waits.map((w, i) => {
      const [[x1, y1], [x2, y2]] = [at(i), at(i + 1)];
      const length = Math.hypot(x2 - x1, y2 - y1);
      const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
      const [mx, my] = [(x1 + x2) / 2 + dy * 34, (y1 + y2) / 2 - dx * 34]; // bends outwards
      return [svg('path', {class: 'wait stuck', 'marker-end': 'url(#loop-stuck)', d: `M${x1 + dx * 9 + dy * 6} ${y1 + dy * 9 - dx * 6} Q${mx} ${my} ${x2 - dx * 12 + dy * 6} ${y2 - dy * 12 - dx * 6}`},
        svg('title', null, w.from + ' waits for ' + w.to + ' at ' + w.lock)),
      svg('text', {x: (mx + (x1 + x2) / 2) / 2, y: (my + (y1 + y2) / 2) / 2 + 4, class: 'number', 'text-anchor': 'middle'}, String(i + 1))];
    }),
    cycle.waits.map((w, i) => {
      const [x, y] = at(i);
      return knot(w.from, [x, y], true, [x, y < height / 2 - 5 ? y - 14 : y + 23, 'middle'], known.label(w.from), 18);
    }));
}

function lockCard(lock, cycles) {
  const holders = lock.queue.filter((c) => c.holds).length;
  const inCycle = new Set(cycles.flatMap((c) => c.sessions));
  return h('section', {class: 'card lock'},
    h('header', null, h('h3', null, znodeLink(lock.path)), badge(lock.kind, 'accent', lock.layout),
      lock.kind === 'semaphore' ? badge(holders + (lock.limit ? ' of ' + lock.limit : '') + ' leases') : null,
      badge(lock.queue.length - holders + ' waiting', lock.queue.length > holders ? 'warn' : '')),
    h('ol', {class: 'lanes', 'aria-label': 'Queue, holders first'}, lock.queue.slice(0, maxPlaces).map((c, i) => h('li',
      {class: 'lane' + (c.holds ? ' holds' : '') + (inCycle.has(c.session) ? ' stuck' : '')},
      h('span', {class: 'lane-place'}, c.holds ? (lock.kind === 'election' ? 'leads' : 'holds') : String(i - holders + 1)),
      h('span', {class: 'lane-body'},
        h('span', null, c.role && c.role !== 'lease' ? badge(c.role) : null, ' ', c.text && [h('b', null, c.text), ' '], sessionLink(c.session), ' ', h('span', {class: 'mono dim'}, c.address || '')),
        h('span', {class: 'dim'}, 'queued ', when(c.since),
          c.waitsFor?.length ? ' · waits for ' + (c.any ? 'one of ' : '') + c.waitsFor.slice(0, 4).map((n) => lock.queue[n].text || lock.queue[n].session || 'no session').join(', ') + (c.waitsFor.length > 4 ? ', …' : '') : ''),
        c.suspect ? h('span', {class: 'suspect'}, badge('left over?', 'warn'), ' ', c.suspect) : null),
      h('a', {class: 'dim mono lane-name hide-small', href: znodeLink(c.path).getAttribute('href'), title: c.path}, base(c.path).slice(-22))))),
    lock.queue.length > maxPlaces && h('p', {class: 'dim'}, (lock.queue.length - maxPlaces) + ' more wait.'));
}

// Each session has a row; an arc beside the rows leads from the one that waits to the one that it waits for.
function graphCard(data, known) {
  const stuck = new Set(data.cycles.flatMap((c) => c.sessions));
  const names = [...new Set(data.waits.flatMap((w) => [w.from, w.to]))].sort((a, b) => stuck.has(b) - stuck.has(a)).slice(0, maxGraph);
  if (names.length < 2) {
    return null;
  }
  const narrow = innerWidth < 560;
  const [width, rowHeight, x] = [narrow ? 330 : 640, 26, narrow ? 80 : 150];
  const at = new Map(names.map((name, i) => [name, rowHeight * (i + 0.5)]));
  const inCycle = (w) => data.cycles.some((c) => c.waits.some((o) => o.from === w.from && o.to === w.to && o.lock === w.lock));
  // Arcs leave a knot below its middle and reach it above, so that no tip lies on the begin of another
  // arc. Tips in the same place are the same; those of a deadlock, the last, cover the others.
  const arcs = data.waits.filter((w) => at.has(w.from) && at.has(w.to)).sort((a, b) => inCycle(a) - inCycle(b)).map((w) => {
    const [y1, y2, bad] = [at.get(w.from) + 5, at.get(w.to) - 5, inCycle(w)];
    const out = x - Math.min(x * 1.2, 18 + 22 * Math.sqrt(Math.abs(y2 - y1) / rowHeight) + (y2 < y1 ? 12 : 0));
    return svg('path', {class: 'wait' + (bad ? ' stuck' : '') + (w.election ? ' election' : ''), 'marker-end': bad ? 'url(#graph-stuck)' : 'url(#graph-tip)',
      d: `M${x - 8} ${y1} C${out} ${y1} ${out} ${y2} ${x - 11} ${y2}`}, svg('title', null, w.from + ' waits for ' + w.to + ' at ' + w.lock));
  });
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'Who waits for whom'),
    h('span', {class: 'dim'}, 'by session, over all locks; dashed: waits to lead, and goes on meanwhile')),
  svg('svg', {class: 'graph', viewBox: `0 0 ${width} ${rowHeight * names.length}`, style: {'max-height': 'none', 'max-width': 1.2 * width + 'px'}, role: 'group', 'aria-label': 'Sessions and the sessions that they wait for'},
    markers('graph'), arcs, names.map((name) => {
      const {name: text, address} = known.of(name);
      return knot(name, [x, at.get(name)], stuck.has(name), [x + 16, at.get(name) + 4, 'start'], [text || '…' + name.slice(-8), address].filter(Boolean).join(' · '), narrow ? 34 : 68);
    })));
}

function knot(id, [cx, cy], stuck, [x, y, anchor], label, max) {
  return svg('a', {href: '#/sessions?filter=' + id}, svg('title', null, label + ' ' + id), svg('circle', {cx, cy, r: 8, class: 'knot' + (stuck ? ' stuck' : '')}),
    svg('text', {x, y, 'text-anchor': anchor}, label.length > max ? label.slice(0, max - 1) + '…' : label));
}

function markers(prefix) {
  return svg('defs', null, ['tip', 'stuck'].map((name) => svg('marker', {id: prefix + '-' + name, viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse'},
    svg('path', {d: 'M0 0L8 4L0 8z', class: name === 'stuck' ? 'tip stuck' : 'tip'}))));
}
