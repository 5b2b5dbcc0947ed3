// The first screen: is it well, and what lives here?
import {findApps, many} from '../js/apps.js';
import {chart} from '../js/chart.js';
import {badge, h} from '../js/dom.js';
import {bytes, compact, count, join, znodeHref, znodeLink} from '../js/format.js';
import {ensemble, quorumLost} from '../js/health.js';
import {page} from './list.js';

const appsEvery = 15_000;
const maxSubtrees = 12;

export default function (ctx) {
  let apps = {at: 0, list: []};
  const load = async () => {
    const fresh = Date.now() - apps.at < appsEvery;
    const [past, e, locks, top, found] = await Promise.all([
      ctx.api.get('past'), ensemble(), ctx.api.get('locks').catch(() => null),
      ctx.api.children('/', {limit: 200}).catch(() => null), fresh ? apps.list : findApps(),
    ]);
    if (!fresh) {
      apps = {at: Date.now(), list: found};
    }
    return {past, e, locks, top, found};
  };
  return page({title: 'Overview', interval: 5000, load, draw: ({past, e, locks, top, found}) => [
    verdict(e, found, locks),
    h('h2', null, 'The last hour'),
    numbers(past.samples, e),
    h('h2', null, 'What lives here'),
    (found.length > 0 || locks?.locks.length > 0) && h('div', {class: 'grid'}, lockCard(locks), found.map(appCard)),
    subtrees(top, found),
  ]});
}

// verdict says in a sentence whether somebody has to do something.
function verdict(e, found, locks) {
  const lost = quorumLost(e);
  const away = e.members.filter((m) => !m.own && m.connected === false).map((m) => m.id);
  const bad = [
    lost && 'There is no quorum: nobody can change anything.',
    away.length > 0 && 'No connection to server ' + away.join(', ') + '.',
    e.dataStatus && 'The data are near or at their limit.',
    e.values.digest_mismatches_count > 0 && 'Members disagree about the data.',
    e.values.gozkd_archive_gaps_total > 0 && 'The archive has gaps.',
    locks?.cycles.length > 0 && (locks.cycles.length === 1 ? 'There is a deadlock.' : 'There are ' + locks.cycles.length + ' deadlocks.'),
    ...found.filter((a) => a.bad.length > 0).map((a) => a.name + ' at ' + a.path + ': ' + a.bad.join(', ') + '.'),
  ].filter(Boolean);
  return h('section', {class: 'card verdict ' + (bad.length ? lost ? 'bad' : 'warn' : 'good')},
    h('strong', null, bad.length ? lost ? 'Not well' : 'Somebody should look' : 'All is well'),
    bad.length ? h('ul', {class: 'plain'}, bad.map((b) => h('li', null, b)))
      : h('span', {class: 'dim'}, e.mode === 'standalone' ? 'A standalone server: if it stops, nobody serves.' : 'All ' + e.members.length + ' members are connected; the leader is server ' + e.leader + '.'));
}

function numbers(samples, e) {
  const of = (key) => samples.map((s) => s[key]);
  const now = (key, value) => (samples.length ? of(key) : value === undefined ? [] : [value]);
  return h('div', {class: 'numbers'}, chart('Changes/s', of('changes'), 'the last hour', {href: '#/activity'}),
    chart('Requests/s', of('requests'), 'the last hour', {href: '#/activity'}),
    chart('Znodes', now('znodes', e.znodes), 'the last hour', {show: compact, href: '#/z/'}), chart('Data', now('bytes', e.dataBytes), 'the last hour', {show: bytes, href: '#/ensemble'}),
    chart('Sessions', of('sessions'), 'the last hour', {href: '#/sessions'}));
}

function lockCard(data) {
  if (!data || data.locks.length === 0) {
    return null;
  }
  const [elections, waiting] = [data.locks.filter((l) => l.kind === 'election').length, data.locks.reduce((n, l) => n + l.queue.filter((c) => !c.holds).length, 0)];
  return h('section', {class: 'card app'}, h('header', null, h('h3', null, h('a', {href: '#/locks'}, 'Locks and elections')),
    data.cycles.length > 0 && badge(data.cycles.length === 1 ? 'a deadlock' : data.cycles.length + ' deadlocks', 'bad')),
  h('p', null, many(data.locks.length - elections, 'lock') + ', ' + many(elections, 'election') + ', ' + count(waiting) + ' waiting' + (data.truncated ? ' and more' : '')));
}

function appCard(app) {
  return h('section', {class: 'card app'}, h('header', null, h('h3', null, h('a', {href: znodeHref(app.path)}, app.name)), h('span', {class: 'mono dim'}, app.path)),
    h('ul', {class: 'plain'}, app.bad.map((f) => h('li', null, badge(f, 'bad'))), app.facts.map((f) => h('li', null, f))));
}

// subtrees are the children of the root with most children, beside the applications.
function subtrees(top, found) {
  const known = new Set(found.map((a) => a.path));
  if (!top) {
    return h('p', {class: 'dim'}, 'The root is not readable for you.');
  }
  const rest = top.children.filter((c) => c.name !== 'zookeeper' && c.stat && !known.has(join('/', c.name)))
    .sort((a, b) => b.stat.numChildren - a.stat.numChildren || b.stat.dataLength - a.stat.dataLength).slice(0, maxSubtrees);
  return h('section', {class: 'card'}, h('header', null, h('h2', null, known.size ? 'Other znodes' : 'Znodes'), h('a', {href: '#/z/'}, 'open the tree')),
    rest.length === 0 ? h('p', {class: 'dim'}, known.size ? 'None.' : 'None yet: nobody has created any.')
      : h('dl', {class: 'facts'}, rest.map((c) => [h('dt', {class: 'mono'}, znodeLink(join('/', c.name))),
        h('dd', {class: 'dim'}, c.stat.numChildren ? count(c.stat.numChildren) + (c.stat.numChildren === 1 ? ' child' : ' children') : bytes(c.stat.dataLength))])));
}
