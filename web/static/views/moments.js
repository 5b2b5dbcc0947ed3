// What differs below a znode between two moments that the archive has.
import {many} from '../js/apps.js';
import {badge, button, h, problem, replace} from '../js/dom.js';
import {count, join, when, znodeHref} from '../js/format.js';
import {moment, noArchive} from '../js/past.js';
import {differenceCard} from './compare.js';

const maxChanges = 10_000; // that are read: the bound of an answer
const maxZnodes = 1000; // that are compared: those that changed last
const maxData = 16 << 10; // bytes of the data that are read for each
const atOnce = 6; // requests: the server keeps the state of one moment in memory for them

/** momentsView shows what differs below path between from and to, both times; without to the end of the archive. */
export function momentsView(ctx, form, {path, from, to}) {
  const status = h('div', {class: 'row', role: 'status'});
  const list = h('div', {class: 'stack'});
  let stop = new AbortController();
  const read = async () => {
    stop.abort();
    stop = new AbortController();
    const {signal} = stop;
    const tell = (...parts) => !signal.aborted && replace(status, parts, button('Stop', () => {
      stop.abort();
      replace(status, badge('stopped', 'warn'), button('Compare again', read));
    }));
    replace(list);
    try {
      const found = await differences(ctx.api, {path, from, to}, signal, tell);
      if (signal.aborted) {
        return;
      }
      to = found.to;
      ctx.setParams({to}); // so that the address means the same tomorrow
      show(found);
    } catch (error) {
      if (!signal.aborted) {
        replace(status);
        replace(list, error.status === 501 ? noArchive() : problem(error, read));
      }
    }
  };
  const show = ({list: all, same, notes}) => {
    const kinds = all.map((d) => kindOf(d)[!d.right ? 0 : !d.left ? 1 : 2][0]);
    const number = (kind, color) => badge(count(kinds.filter((k) => k === kind).length) + ' ' + kind, color);
    replace(status, h('span', {class: 'dim'}, moment(from), ' – ', moment(to)), number('created', 'good'), number('deleted', 'bad'), number('changed', 'warn'),
      kinds.includes('created anew') && number('created anew', 'warn'), same > 0 && badge(many(same, 'znode') + ' changed and as before'), notes.map((text) => badge(text, 'warn')));
    replace(list, all.map((d) => differenceCard(d, kindOf(d), (i) => h('a', {class: 'mono', href: znodeHref(d.path) + '?at=' + d.at[i]}, i ? 'after' : 'before'))),
      all.length === 0 && h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, 'No difference'), h('p', null, 'Nothing below ' + path + ' differs between these moments.')));
  };
  read();
  return {
    title: 'History', refresh: () => list.firstChild?.matches('.problem') && read(), keys: {r: read}, close: () => stop.abort(),
    element: h('div', {class: 'page'}, h('div', {class: 'page-head'}, h('h1', null, 'History'), form), status, list),
  };
}

function kindOf({left, right}) {
  const anew = left && right && left.czxid !== right.czxid;
  return [['deleted', 'bad'], ['created', 'good'], [anew ? 'created anew' : 'changed', 'warn']];
}

// differences compares the znodes that changed in between, each as it was at both moments: {list, same, to, notes}.
async function differences(api, {path, from, to}, signal, tell) {
  if (!(Date.parse(from) < (to ? Date.parse(to) : Infinity))) {
    throw Object.assign(new Error('The first moment must be a time before the second.'), {title: 'These moments cannot be compared'});
  }
  tell('Reading what changed …');
  const end = to && await there(api, path, to, null, signal); // null: the root was not there
  const changes = await api.get('history', {path, since: from, limit: maxChanges, before: end?.zxid && '0x' + (BigInt(end.zxid) + 1n).toString(16)}, {signal});
  to ||= new Date(changes.until).toISOString();
  const inside = changes.versions.filter((v) => v.time <= Date.parse(to));
  const paths = [...new Set(inside.filter((v) => v.path).map((v) => v.path))];
  if (paths.length === 0 && !await there(api, path, to, null, signal)) {
    throw Object.assign(new Error(path + ' did not exist at either moment.'), {title: 'There is nothing to compare'});
  }
  const begin = changes.versions.find((v) => v.change === 'earlier' && v.time > Date.parse(from));
  const before = begin?.zxid || from;
  const known = new Set(paths);
  const queue = paths.slice(0, maxZnodes);
  const after = inside.find((v) => v.path)?.zxid; // later changes until to are none of this subtree
  const right = new Map();
  await all(queue, signal, async (p) => right.set(p, await state(api, p, after, null, signal)), (n) => tell('After: ' + count(n) + ' of ' + many(queue.length, 'znode') + ' …'));
  const left = new Map();
  await all(queue, signal, async (p) => {
    const [then, now] = [await state(api, p, before, right.get(p), signal), right.get(p)];
    left.set(p, then);
    if (then?.numChildren > 0 && !now && queue.length < maxZnodes) {
      // A transaction that deletes a znode and what is below it counts as one change.
      const below = await there(api, p, before, {children: true, limit: maxZnodes}, signal);
      const gone = (below?.children || []).map((c) => join(p, c.name)).filter((child) => !known.has(child));
      gone.forEach((child) => known.add(child));
      queue.push(...gone.slice(0, maxZnodes - queue.length));
    }
  }, (n) => tell('Before: ' + count(n) + ' of ' + many(queue.length, 'znode') + ' …'));
  const list = queue.map((p) => difference(p, left.get(p), right.get(p) || null, [before, after])).filter(Boolean).sort((a, b) => (a.path < b.path ? -1 : 1));
  return {list, to, same: queue.length - list.length, notes: [
    begin && ['the archive begins ', when(begin.time)],
    changes.next && ['More than ' + count(maxChanges) + ' changes: those before ', when(inside.at(-1)?.time || changes.versions.at(-1).time), ' are missing'],
    known.size > queue.length && count(known.size - queue.length) + ' more znodes are not compared',
    changes.hidden && 'some changes were not readable for you',
    inside.some((v) => v.change === 'gap') && 'the archive has a gap: changes in it are missing',
  ].filter(Boolean)};
}

// all calls f with each element of a queue, several at once. f may append to the queue.
async function all(queue, signal, f, tell) {
  let next = 0;
  let done = 0;
  const work = async () => {
    while (next < queue.length) {
      signal.throwIfAborted();
      await f(queue[next++]);
      tell(++done);
    }
  };
  await Promise.all(Array.from({length: atOnce}, work));
}

// there returns a znode as it was, null if it did not exist, and {denied} if the person may not read it.
async function there(api, path, at, query, signal) {
  for (;;) {
    try {
      return await api.at(path, at, query, signal);
    } catch (error) {
      if (error.code === -101) {
        return null;
      }
      if (error.forbidden) {
        return {denied: true};
      }
      if (error.status !== 429) {
        throw error;
      }
      await new Promise((wake) => setTimeout(wake, 1000)); // more requests per second than a caller may send
    }
  }
}

// state returns what differenceCard shows of a znode as it was. Data that the other side has are not read again.
async function state(api, path, at, other, signal) {
  const z = await there(api, path, at, {acl: true}, signal);
  if (!z || z.denied) {
    return z;
  }
  const large = z.stat.dataLength > maxData;
  const read = !large && z.stat.mzxid !== other?.mzxid && await there(api, path, at, null, signal);
  return {...z.stat, acl: z.acl, large, session: z.stat.ephemeralOwner === '0x0' ? null : z.stat.ephemeralOwner, data: read?.data ?? other?.data};
}

// difference returns what differs, null if nothing does.
function difference(path, left, right, at) {
  const d = {path, left, right, at, access: Boolean(left?.denied || right?.denied)};
  if (left && right && !d.access) {
    d.data = left.large || right.large ? left.mzxid !== right.mzxid : left.data !== right.data;
    d.acl = JSON.stringify(left.acl) !== JSON.stringify(right.acl);
    d.ephemeral = Boolean(left.session) !== Boolean(right.session);
    return d.data || d.acl || d.ephemeral || left.czxid !== right.czxid ? d : null;
  }
  return left || right ? d : null;
}
