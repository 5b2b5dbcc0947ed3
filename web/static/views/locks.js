// Locks and elections: their queues, and which sessions wait for which.
import {badge, h, replace, svg} from '../js/dom.js';
import {filterBox} from '../js/list.js';
import {base, count, time, znodeLink} from '../js/format.js';
import {more, page, sessionLink} from './list.js';

const maxPlaces = 12;
const maxGraph = 24;

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
  return page({
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
      const waiting = data.locks.reduce((n, l) => n + l.queue.filter((c) => !c.holds).length, 0);
      return [
        h('div', {class: 'row'}, badge(count(data.locks.length) + ' locks'), badge(count(waiting) + ' waiting', waiting ? 'accent' : ''),
          badge(data.cycles.length ? data.cycles.length + (data.cycles.length === 1 ? ' cycle' : ' cycles') : 'no cycles', data.cycles.length ? 'bad' : 'good', 'Sessions that wait for each other across locks'),
          data.denied ? badge(data.denied + ' not readable', 'warn', 'The ACLs of these directories do not let you read them') : null, more(data.truncated)),
        data.cycles.map(cycleCard), graphCard(data), list,
      ];
    },
  });
}

function cycleCard(cycle) {
  return h('section', {class: 'card cycle', role: 'alert'}, h('header', null, h('h2', null, 'These sessions wait for each other'), badge('cycle', 'bad')),
    h('p', null, 'Unless a client gives up, they wait forever. A client with several threads may let go all the same.'),
    h('ul', {class: 'plain'}, cycle.waits.map((w) => h('li', null, sessionLink(w.from), ' waits for ', sessionLink(w.to), ' at ', znodeLink(w.lock)))));
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
        h('span', null, c.role && c.role !== 'lease' ? badge(c.role) : null, ' ', sessionLink(c.session), ' ', h('span', {class: 'mono dim'}, c.address || '')),
        h('span', {class: 'dim'}, c.text ? '“' + c.text + '” · ' : '', c.holds ? 'in the queue since ' : 'waits since ', time(c.since),
          c.waitsFor?.length ? ' for ' + (c.any ? 'one of ' : '') + c.waitsFor.slice(0, 4).map((n) => lock.queue[n].session || 'no session').join(', ') + (c.waitsFor.length > 4 ? ', …' : '') : ''),
        c.suspect ? h('span', {class: 'suspect'}, badge('left over?', 'warn'), ' ', c.suspect) : null),
      h('a', {class: 'dim mono lane-name hide-small', href: znodeLink(c.path).getAttribute('href'), title: c.path}, base(c.path).slice(-22))))),
    lock.queue.length > maxPlaces && h('p', {class: 'dim'}, (lock.queue.length - maxPlaces) + ' more wait.'));
}

// The sessions stand on a circle; an arrow leads from the one that waits to the one it waits for.
function graphCard(data) {
  const stuck = new Set(data.cycles.flatMap((c) => c.sessions));
  const names = [...new Set(data.waits.flatMap((w) => [w.from, w.to]))].sort((a, b) => stuck.has(b) - stuck.has(a)).slice(0, maxGraph);
  if (names.length < 2) {
    return null;
  }
  const [width, height] = [innerWidth < 560 ? 330 : 640, Math.max(170, Math.min(400, 90 + 26 * names.length))];
  const at = new Map(names.map((name, i) => {
    const angle = 2 * Math.PI * i / names.length - Math.PI / 2;
    return [name, [width / 2 + (width / 2 - 110) * Math.cos(angle), height / 2 + (height / 2 - 34) * Math.sin(angle)]];
  }));
  const addresses = new Map(data.locks.flatMap((l) => l.queue.map((c) => [c.session, c.address])));
  const inCycle = (w) => data.cycles.some((c) => c.waits.some((x) => x.from === w.from && x.to === w.to && x.lock === w.lock));
  const arrows = data.waits.filter((w) => at.has(w.from) && at.has(w.to)).map((w) => {
    const [x1, y1] = at.get(w.from);
    const [x2, y2] = at.get(w.to);
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    const bend = 18;
    const [mx, my] = [(x1 + x2) / 2 - dy * bend, (y1 + y2) / 2 + dx * bend];
    return svg('path', {class: 'wait' + (inCycle(w) ? ' stuck' : ''), 'marker-end': inCycle(w) ? 'url(#arrow-stuck)' : 'url(#arrow)',
      d: `M${x1 + dx * 14} ${y1 + dy * 14} Q${mx} ${my} ${x2 - dx * 16} ${y2 - dy * 16}`}, svg('title', null, w.from + ' waits for ' + w.to + ' at ' + w.lock));
  });
  const marker = (id, cls) => svg('marker', {id, viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse'},
    svg('path', {d: 'M0 0L8 4L0 8z', class: cls}));
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'Who waits for whom'), h('span', {class: 'dim'}, 'by session, over all locks')),
    svg('svg', {class: 'graph', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Sessions and the sessions that they wait for'},
      svg('defs', null, marker('arrow', 'tip'), marker('arrow-stuck', 'tip stuck')), arrows,
      names.map((name) => {
        const [x, y] = at.get(name);
        return svg('a', {href: '#/sessions?filter=' + name}, svg('circle', {cx: x, cy: y, r: 9, class: 'knot' + (stuck.has(name) ? ' stuck' : '')}),
          svg('text', {x, y: y > height / 2 - 5 ? y + 23 : y - 15, 'text-anchor': 'middle'}, addresses.get(name) && addresses.get(name) !== 'pipe' ? addresses.get(name) : '…' + name.slice(-8)));
      })));
}
