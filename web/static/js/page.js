// The page of one znode: path, badges, data, children, stat, ACL, quota.
import * as api from './api.js';
import {badge, button, download, empty, h, loading, problem, replace} from './dom.js';
import {base, bytes, clock, count, duration, join, overHTTP, parent, time, znodeHref, znodeLink} from './format.js';
import {childTable} from './children.js';
import {masked} from './edit.js';
import {pinned} from './jump.js';
import {moment} from './past.js';
import {isEphemeral} from './tree.js';
import {viewData} from './viewers/index.js';

/**
 * page shows the znode of ctx().path. act(name) runs an action, updated(path, stat) gets what was
 * read. Returns {element, show, refresh, event, seen, state, place, drawHead, close}.
 */
export function page({ctx, act, following, showTree, updated}) {
  const head = h('div', {class: 'znode-head'});
  const badges = h('div', {class: 'row badges'});
  const extra = h('div', {class: 'extra'});
  const dataCard = h('div', {class: 'card'});
  const childCard = h('div', {class: 'card'});
  const factCard = h('div', {class: 'card'});
  const aclCard = h('div', {class: 'card'});
  const columns = h('div', {class: 'znode-columns'}, h('div', {class: 'stack'}, extra, dataCard, childCard), h('aside', {class: 'stack', 'aria-label': 'Details'}, factCard, aclCard));
  const status = h('span', {class: 'live', role: 'img'});
  const element = h('div', {class: 'znode'}, head, badges, columns);
  let seen = null; // {path, stat, data, acl}: what writes and conflicts refer to
  let children = null;
  let blocked = ''; // why nothing can be changed here
  let visit = 0;
  let again = 0;
  let loaded = null; // a promise: until then nobody knows what a change would change

  const mayNot = () => blocked || (api.past() && 'This is how it was as of ' + moment(api.past()) + ': go back to now to change it') || ctx().mayNot('write', 'Your role “' + ctx().role + '” may not change znodes');

  function actions() {
    const reason = mayNot();
    return [
      button('Edit', () => act('edit'), {iconName: 'edit', reason: reason || (seen?.large ? 'More than 1 MiB: use PUT of the REST interface' : seen?.failed ? 'The data could not be read' : null), title: 'Edit the data (e)'}),
      button('New child', () => act('create'), {iconName: 'plus', reason: reason || (seen && isEphemeral(seen.stat) ? 'An ephemeral znode has no children' : null), title: 'Create a child (n)'}),
      button('Delete', () => act('remove'), {iconName: 'trash', reason: reason || (ctx().path === '/' ? 'The root cannot be deleted' : null), title: 'Delete (d)'}),
      button('Follow', () => act('follow'), {iconName: 'live', pressed: following(), reason: api.past() && 'What is past does not change', title: 'Show changes of the subtree as they happen (f)'}),
    ];
  }

  function drawHead() {
    const path = ctx().path;
    const names = path.split('/').filter(Boolean);
    const crumbs = [h('li', null, h('a', {href: '#/z/', 'aria-label': 'root'}, '/'))];
    names.forEach((name, i) => {
      const to = '/' + names.slice(0, i + 1).join('/');
      crumbs.push(h('li', null, i > 0 && h('span', {class: 'dim'}, '/'), i === names.length - 1
        ? h('strong', {'aria-current': 'page'}, name) : h('a', {href: znodeHref(to)}, name)));
    });
    replace(head, h('h1', {class: 'offscreen'}, path),
      h('span', {class: 'only-small'}, button('', showTree, {kind: 'quiet', iconName: 'tree', title: 'Show the tree'})),
      h('nav', {class: 'crumbs mono', 'aria-label': 'Path'}, h('ol', null, crumbs)),
      button('', () => act('copy'), {kind: 'quiet', iconName: 'copy', title: 'Copy the path (y)'}),
      button('', () => act('pin'), {kind: 'quiet', iconName: 'pin', title: 'Pin the path (p)', pressed: pinned(path)}), status,
      h('div', {class: 'row actions'}, actions()));
  }

  function drawBadges(more = []) {
    const stat = seen.stat;
    const out = [];
    if (isEphemeral(stat)) {
      out.push(h('span', {class: 'badge accent', title: 'Deleted as soon as its session ends'}, 'ephemeral · session ',
        h('a', {href: '#/sessions?filter=' + stat.ephemeralOwner}, stat.ephemeralOwner)));
    }
    if (stat.kind === 'container') {
      out.push(badge('container', 'accent', 'Removed after its last child was deleted'));
    }
    if (stat.kind === 'ttl') {
      const left = stat.mtime + stat.ttlMs - Date.now();
      out.push(badge('TTL ' + duration(stat.ttlMs) + (stat.numChildren > 0 ? '' : left > 0 ? ' · ' + duration(left) + ' left' : ' · due'), 'warn',
        'Removed if it has no children and was not changed for ' + duration(stat.ttlMs)));
    }
    if (api.past()) {
      out.unshift(badge('as of ' + moment(api.past()), 'warn', 'Nothing can be changed here. The clock above the tree leads back to now.'));
    }
    replace(badges, out, badge('version ' + stat.version), badge(bytes(stat.dataLength)), badge(count(stat.numChildren) + (stat.numChildren === 1 ? ' child' : ' children')),
      more, stat.mtime > 0 && h('span', {class: 'dim'}, 'changed ', time(stat.mtime)));
  }

  function drawFacts() {
    const s = seen.stat;
    const moments = (ms) => [time(ms), ms > 0 && h('div', {class: 'dim'}, clock(ms))];
    const zxid = (value) => h('span', {class: 'mono'}, value);
    replace(factCard, h('header', null, h('h2', null, 'Stat')), h('dl', {class: 'facts'}, [
      ['Created', moments(s.ctime)], ['Changed', moments(s.mtime)], ['Version', s.version], ['Version of children', s.cversion], ['Version of ACL', s.aversion],
      ['czxid', zxid(s.czxid)], ['mzxid', zxid(s.mzxid)], ['pzxid', zxid(s.pzxid)], ['Size', bytes(s.dataLength)], ['Children', count(s.numChildren)],
      isEphemeral(s) && ['Owner', zxid(s.ephemeralOwner)], s.ttlMs && ['TTL', duration(s.ttlMs)],
    ].filter(Boolean).map(([name, value]) => [h('dt', null, name), h('dd', null, value)])),
    h('p', {class: 'row links'}, h('a', {href: '#/history?path=' + encodeURIComponent(ctx().path)}, 'History'),
      s.numChildren > 0 && h('a', {href: '#/history?below=3600&path=' + encodeURIComponent(ctx().path)}, 'Changes below'),
      h('a', {href: '#/compare?left=' + encodeURIComponent(ctx().path)}, 'Compare'),
      h('a', {href: '#/transfer?root=' + encodeURIComponent(ctx().path)}, 'Export'),
      h('button', {type: 'button', class: 'link', onclick: () => act('duplicate'), disabled: Boolean(mayNot()), title: mayNot() || 'Copy or move the subtree (m)'}, 'Copy or move'),
      h('a', {href: '#/search?root=' + encodeURIComponent(ctx().path)}, 'Search'),
      h('a', {href: '#/watches?path=' + encodeURIComponent(ctx().path)}, 'Watches')));
  }

  const meaning = {c: 'create', d: 'delete', r: 'read', w: 'write', a: 'admin'};

  function drawACL(result) {
    const header = h('header', null, h('h2', null, 'ACL'), result.status === 'fulfilled' && button('', () => act('acl'), {
      kind: 'quiet', iconName: 'edit', title: 'Edit the ACL (a)', reason: mayNot()}));
    if (result.status === 'rejected') {
      replace(aclCard, header, h('p', {class: 'dim'}, result.reason.message));
      return;
    }
    replace(aclCard, header, h('ul', {class: 'plain'}, result.value.acl.map((entry) => h('li', {class: 'acl'},
      h('span', {class: 'mono break'}, entry.scheme + ':' + entry.id, masked(entry) && [' ', badge('hash hidden', '', 'Whoever may not change the ACL does not see the hash of the password')]),
      h('span', {class: 'perms mono', title: [...entry.perms].map((p) => meaning[p]).join(', ')}, [...'cdrwa'].map((p) =>
        h('span', {class: entry.perms.includes(p) ? 'on' : ''}, entry.perms.includes(p) ? p : '–')))))));
  }

  function drawData(result, flash) {
    dataCard.classList.remove('flash');
    if (result.status === 'rejected') {
      replace(dataCard, h('h2', null, 'Data'), problem(result.reason));
      return;
    }
    if (result.value.large) {
      const path = ctx().path;
      replace(dataCard, empty('More than 1 MiB of data', 'Too much to show here.',
        button('Download', async () => download(base(path), await api.data(path)), {iconName: 'download'})));
      return;
    }
    replace(dataCard, viewData(ctx().path, result.value.data));
    if (flash) {
      void dataCard.offsetWidth; // restarts the animation
      dataCard.classList.add('flash');
    }
  }

  async function read() {
    const path = ctx().path;
    const mine = ++visit;
    const before = seen?.path === path ? seen : null;
    const [data, list, acl] = await Promise.allSettled([api.znode(path), before && children ? children.reload() : children.first, api.acl(path)]);
    if (mine !== visit) {
      return;
    }
    if (before && [data, list, acl].some((r) => r.reason?.status === 0)) {
      return; // no answer: what was read before stays readable, and the banner says that it may be out of date
    }
    const gone = [data, list].find((r) => r.status === 'rejected' && r.reason.missing && (r.reason.code || !api.past()));
    if (gone) {
      seen = null;
      blocked = 'There is no such znode';
      replace(badges);
      replace(factCard);
      replace(aclCard);
      replace(childCard);
      replace(dataCard, empty('There is no znode ' + path, before ? 'It was deleted while you looked at it.' : api.past() ? 'There was none as of ' + moment(api.past()) + '.' : 'It may have been deleted, or the path is misspelt.',
        h('a', {class: 'button', href: znodeHref(parent(path))}, 'Go to ' + parent(path)),
        !api.past() && h('a', {class: 'button quiet', href: '#/sessions?filter=' + encodeURIComponent(path)}, 'Did its session end?')));
      [factCard, aclCard, childCard].forEach((card) => (card.hidden = true));
      drawHead();
      return;
    }
    const stat = data.value?.stat || list.value?.stat || children.pages.stat || acl.value?.stat;
    if (!stat) {
      replace(badges);
      [factCard, aclCard, childCard].forEach((card) => (card.hidden = true));
      blocked = 'The znode could not be read';
      replace(dataCard, problem(data.reason || list.reason, read));
      drawHead();
      return;
    }
    blocked = '';
    const fresh = !before || before.stat.mzxid !== stat.mzxid || before.failed !== (data.status === 'rejected');
    seen = {path, stat, data: data.value?.data, large: data.value?.large, acl: acl.value, failed: data.status === 'rejected'};
    [factCard, aclCard].forEach((card) => (card.hidden = false));
    updated(path, stat);
    drawHead();
    drawBadges();
    drawFacts();
    drawACL(acl);
    if (fresh) {
      drawData(data, before);
    }
    childCard.classList.toggle('leads', stat.dataLength === 0); // a directory has its children first
    childCard.hidden = stat.numChildren === 0 && list.status === 'fulfilled';
    if (list.status === 'rejected') {
      replace(childCard, h('h2', null, 'Children'), problem(list.reason));
    } else if (!childCard.contains(children.element)) {
      replace(childCard, children.element);
    }
    if (!api.past()) {
      decorate(mine);
    }
  }

  // Watches and quota need more requests, of which some may be refused: they come last.
  async function decorate(mine) {
    const path = ctx().path;
    const [watches, quota, session] = await Promise.allSettled([
      ctx().may('read') ? api.get('watches', {path, limit: 100}, {quiet: true}) : null, readQuota(path),
      isEphemeral(seen.stat) ? api.get('sessions', {id: seen.stat.ephemeralOwner, limit: 1}, {quiet: true}) : null]);
    if (mine !== visit || !seen) {
      return;
    }
    const more = [];
    const rows = watches.value?.watches.filter((w) => !overHTTP(w.address)); // the page itself watches, too
    if (rows?.length > 0) {
      more.push(h('span', {class: 'badge', title: 'Watches on this path'}, h('a', {href: '#/watches?path=' + encodeURIComponent(path)},
        rows.length + (watches.value.truncated ? '+' : '') + (rows.length === 1 ? ' watch' : ' watches'))));
    }
    const owner = session.value?.sessions?.find((s) => s.id === seen.stat.ephemeralOwner);
    if (owner?.address) {
      more.unshift(badge('client ' + owner.address.replace(/:0$/, ''), 'accent', 'Where the session is connected'));
    }
    if (quota.value) {
      more.push(...quota.value);
    }
    if (more.length > 0) {
      drawBadges(more);
    }
  }

  function event(kind, path) {
    const here = ctx().path;
    if (path !== here && parent(path) !== here) {
      return;
    }
    // At most a few times per second, however often the znode changes.
    again ||= setTimeout(() => {
      again = 0;
      refresh();
    }, 250);
  }

  // A refresh waits for the first read and does not replace it, because actions wait for that read.
  async function refresh() {
    const mine = loaded;
    await mine;
    if (mine === loaded) {
      read();
    }
  }

  function state(text) {
    status.className = 'live ' + text;
    status.setAttribute('aria-label', text);
    status.title = {connecting: 'Connecting: changes do not appear by themselves yet', live: 'Live: changes of this znode appear by themselves', lost: 'The stream of changes was lost; reconnecting', stale: 'No quorum: changes appear when a majority is back', paused: 'Paused while the page was hidden', past: 'As it was: what is past does not change'}[text];
  }

  return {
    element, refresh, event, state, drawHead,
    seen: async () => {
      await loaded;
      return seen;
    },
    place: (panel) => replace(extra, panel),
    show(panel) {
      children?.close();
      clearTimeout(again);
      again = 0;
      seen = null;
      blocked = '';
      replace(extra, panel);
      drawHead();
      replace(badges, h('span', {class: 'dim'}, ' '));
      replace(dataCard, loading(4));
      [factCard, aclCard, childCard].forEach((card) => (card.hidden = true));
      dataCard.classList.remove('flash');
      element.scrollTop = 0;
      children = childTable(ctx().path, {remove: (items) => act('remove', items), mayNot});
      loaded = read();
    },
    close() {
      visit++;
      loaded = null;
      clearTimeout(again);
      children?.close();
    },
  };
}

// readQuota returns badges for the quota on the path or the nearest one above it. Quotas are below
// /zookeeper/quota, under the paths that they limit.
async function readQuota(path) {
  let found = null;
  let place = '/zookeeper/quota';
  for (const name of path.startsWith('/zookeeper') ? [] : path.split('/').filter(Boolean)) {
    const next = await api.children(place, {prefix: name, limit: 1, stat: false});
    if (next.children[0]?.name !== name) {
      break;
    }
    place = join(place, name);
    const own = await api.children(place, {prefix: 'zookeeper_limits', limit: 1, stat: false});
    found = own.children.length > 0 ? place : found;
  }
  if (!found) {
    return null;
  }
  const [limits, stats] = await Promise.all(['zookeeper_limits', 'zookeeper_stats'].map(async (name) => parseQuota((await api.znode(join(found, name))).data)));
  return quotaBadges(found.slice('/zookeeper/quota'.length), limits, stats);
}

/** parseQuota reads 'count=5,bytes=-1=;byteHardLimit=100;…' into an object. */
export function parseQuota(data) {
  const out = {};
  for (const [, name, value] of new TextDecoder().decode(data).matchAll(/(\w+)=(-?\d+)/g)) {
    out[name] = Number(value);
  }
  return out;
}

function quotaBadges(at, limits, stats) {
  const of = [['znodes', stats.count, [limits.countHardLimit, limits.count], count], ['bytes', stats.bytes, [limits.byteHardLimit, limits.bytes], bytes]];
  return of.flatMap(([name, used, bounds, format]) => {
    const limit = bounds.find((b) => b > 0);
    if (!limit) {
      return [];
    }
    const full = used / limit;
    return [h('span', {class: 'badge ' + (full > 1 ? 'bad' : full > 0.8 ? 'warn' : ''), title: 'Quota of ' + at}, 'quota ', znodeLink(at, base(at)), ' ',
      format(used) + ' of ' + format(limit) + (name === 'znodes' ? ' znodes' : ''),
      h('span', {class: 'bar mini'}, h('div', {style: {width: Math.min(100, 100 * full) + '%'}})))];
  });
}
