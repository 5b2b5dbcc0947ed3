// The first screen: is it well, and what lives here?
import {findApps, many} from '../js/apps.js';
import {chart} from '../js/chart.js';
import {h} from '../js/dom.js';
import {bytes, compact, count, join, znodeHref, znodeLink} from '../js/format.js';
import {ensemble, quorumLost} from '../js/health.js';
import {page} from './list.js';

const appsEvery = 15_000;
const maxSubtrees = 12;
const maxCounted = 10_000; // znodes of one of them

export default function (ctx) {
  let apps = {at: 0, list: []};
  const sizes = new Map(); // of subtrees beside the applications: {znodes, bytes, truncated}, null while they are counted
  const load = async () => {
    const fresh = Date.now() - apps.at < appsEvery;
    const [past, e, locks, activity, top, found] = await Promise.all([
      ctx.api.get('past'), ensemble(), ctx.api.get('locks').catch(() => null), ctx.api.get('activity'),
      ctx.api.children('/', {limit: 200}).catch(() => null), fresh ? apps.list : findApps(),
    ]);
    if (!fresh) {
      apps = {at: Date.now(), list: found};
    }
    const rest = top && unknown(top.children, found);
    measure((rest || []).map((c) => join('/', c.name)));
    return {past, e, locks, hot: activity.hot, rest, found};
  };
  // One after the other, and once: each is a walk of the server.
  const measure = async (paths) => {
    for (const root of paths.filter((path) => !sizes.has(path))) {
      sizes.set(root, null);
      sizes.set(root, await ctx.api.get('subtree', {root, limit: maxCounted}).catch(() => null));
    }
  };
  return page({title: 'Overview', interval: 5000, load, draw: ({past, e, locks, hot, rest, found}) => [
    verdict(e, found, locks),
    h('h2', null, span(past.samples)),
    numbers(past.samples, e),
    h('h2', null, 'What lives here'),
    (found.length > 0 || locks?.locks.length > 0) && h('div', {class: 'apps'}, lockCard(locks), found.map(appCard)),
    subtrees(rest, found, sizes, hot),
  ]});
}

// verdict says in a sentence whether somebody has to do something, and leads there.
function verdict(e, found, locks) {
  const lost = quorumLost(e);
  const away = e.members.filter((m) => !m.own && m.connected === false).map((m) => m.id);
  const bad = [
    lost && ['There is no quorum: nobody can change anything.', '#/ensemble'],
    away.length > 0 && [(away.length === 1 ? 'No connection to server ' : 'No connection to servers ') + away.join(', ') + '.', '#/ensemble'],
    e.dataStatus && ['The data are near or at their limit.', '#/ensemble'],
    e.values.digest_mismatches_count > 0 && ['Members disagree about the data.', '#/ensemble'],
    e.values.gozkd_archive_gaps_total > 0 && ['The archive has gaps.', '#/ensemble'],
    locks?.cycles.length > 0 && [locks.cycles.length === 1 ? 'There is a deadlock.' : 'There are ' + locks.cycles.length + ' deadlocks.', '#/locks'],
    ...found.flatMap((a) => a.facts.filter((f) => f.wrong).map((f) => [a.name + ' at ' + a.path + ': ' + f.text + '.', znodeHref(f.path)])),
  ].filter(Boolean);
  return h('section', {class: 'card verdict ' + (bad.length ? lost ? 'bad' : 'warn' : 'good')},
    h('strong', null, bad.length ? lost ? 'No quorum' : 'Needs attention' : 'All is well'),
    bad.length ? h('ul', {class: 'plain'}, bad.map(([text, href]) => h('li', null, h('a', {href}, text))))
      : h('span', {class: 'dim'}, e.mode === 'standalone' ? 'A standalone server: if it stops, nobody serves.' : 'All ' + e.members.length + ' members are connected; the leader is server ' + e.leader + '.'));
}

// numbers are those of the last hour, or since the server has started.
function numbers(samples, e) {
  const of = (key) => samples.map((s) => s[key]);
  const now = (key, value) => (samples.length ? of(key) : value === undefined ? [] : [value]);
  const draw = (title, values, options) => chart(title, values, span(samples), '20 s', options);
  return h('div', {class: 'numbers'}, draw('Changes/s', of('changes'), {href: '#/activity'}), draw('Requests/s', of('requests'), {href: '#/activity'}),
    draw('Znodes', now('znodes', e.znodes), {show: compact, href: '#/z/'}), draw('Data', now('bytes', e.dataBytes), {show: bytes, href: '#/ensemble'}),
    draw('Sessions', of('sessions'), {href: '#/sessions'}));
}

// span names the time of the samples.
function span(samples) {
  const minutes = samples.length > 1 ? Math.round((samples.at(-1).time - samples[0].time) / 60_000) : 0;
  return samples.length < 2 ? 'Now' : minutes > 55 ? 'The last hour' : minutes < 2 ? 'The last minute' : 'The last ' + minutes + ' minutes';
}

function lockCard(data) {
  if (!data || data.locks.length === 0) {
    return null;
  }
  const [elections, waiting] = [data.locks.filter((l) => l.kind === 'election').length, data.locks.reduce((n, l) => n + l.queue.filter((c) => !c.holds).length, 0)];
  const say = (text, wrong) => ({text, href: '#/locks', wrong});
  return card('Locks and elections', '#/locks', data.truncated ? 'and more' : '', [
    data.cycles.length > 0 && say(many(data.cycles.length, 'deadlock'), true), elections < data.locks.length && say(many(data.locks.length - elections, 'lock')),
    elections > 0 && say(many(elections, 'election')), say(count(waiting) + ' waiting')].filter(Boolean));
}

function appCard({name, path, facts}) {
  return card(name, znodeHref(path), path, facts.map((f) => ({...f, href: znodeHref(f.path)})));
}

// card shows facts {text, href, wrong}, each with a link to where a person sees it.
function card(title, href, at, facts) {
  return h('section', {class: 'card app'}, h('header', null, h('h3', null, h('a', {href}, title)), h('span', {class: 'mono dim'}, at)),
    h('ul', {class: 'plain'}, facts.map((f) => h('li', null, h('a', {href: f.href, class: f.wrong ? 'badge bad' : ''}, f.text)))));
}

// unknown returns the children of the root beside the applications, those with most children first.
function unknown(children, found) {
  const known = new Set(found.map((a) => a.path));
  return children.filter((c) => c.name !== 'zookeeper' && c.stat && !known.has(join('/', c.name)))
    .sort((a, b) => b.stat.numChildren - a.stat.numChildren || b.stat.dataLength - a.stat.dataLength).slice(0, maxSubtrees);
}

// subtrees shows how large they are, and for those who may see hot paths, how busy.
function subtrees(rest, found, sizes, hot) {
  if (!rest) {
    return h('p', {class: 'dim'}, 'The root is not readable for you.');
  }
  const others = found.some((a) => a.path !== '/');
  const rows = rest.map(({name, stat}) => {
    const path = join('/', name);
    const busy = (hot?.paths || []).filter((p) => p.path === path || p.path.startsWith(path + '/'));
    const rate = (key) => Math.round(busy.reduce((n, p) => n + p[key], 0));
    return {path, size: sizes.get(path), stat, rates: [rate('reads'), rate('writes')]};
  }).sort((a, b) => (b.size?.znodes ?? 0) - (a.size?.znodes ?? 0));
  return h('section', {class: 'card'}, h('header', null, h('h2', null, others ? 'Other znodes' : 'Znodes'), h('a', {href: '#/z/'}, 'open the tree')),
    rows.length === 0 ? h('p', {class: 'dim'}, others ? 'None.' : 'None yet: nobody has created any.')
      : h('dl', {class: 'facts'}, rows.map(({path, size, stat, rates: [reads, writes]}) => [h('dt', {class: 'mono'}, znodeLink(path)),
        h('dd', {class: 'dim'}, size ? [many(size.znodes, 'znode') + (size.truncated ? ' or more' : ''), ', ', bytes(size.bytes)] : stat.numChildren ? many(stat.numChildren, 'child', 'children') : bytes(stat.dataLength),
          reads + writes > 0 && ', ' + many(reads, 'read') + ' and ' + many(writes, 'write') + ' per second')])));
}
