// Differences of two subtrees, also of two ensembles.
import {many} from '../js/apps.js';
import {badge, field, h, replace} from '../js/dom.js';
import {diffView} from '../js/diff.js';
import {bytes, count, join, normal, time, znodeLink} from '../js/format.js';
import {dataDiff, dataText, flow} from './list.js';
import {reasons} from './search.js';

export default function (ctx) {
  const input = (name, placeholder) => h('input', {name, placeholder, value: ctx.params.get(name) || '', spellcheck: 'false', autocomplete: 'off'});
  const [left, right, connect] = [input('left', '/app'), input('right', '/app-old'), input('connect', 'this one, or host:2181')];
  const status = h('div', {class: 'row', 'aria-live': 'polite'});
  const list = h('div', {class: 'stack'});
  let stop = null;
  const start = (event) => {
    event?.preventDefault();
    stop?.();
    const query = {left: normal(left.value), right: normal(right.value || left.value), connect: connect.value.trim() || null};
    ctx.setParams(query);
    replace(list);
    replace(status, badge('comparing …'));
    stop = flow(ctx.api, 'ui/api/compare', query, {
      difference: (d) => list.append(differenceCard(d, query)),
      end: (x) => replace(status, badge(many(x.found, 'difference'), x.found ? 'accent' : 'good'), badge(count(x.visited - x.found) + ' equal'),
        badge(...(reasons[x.reason] || [x.reason, 'bad']))),
      failed: (error) => replace(status, h('span', {role: 'alert'}, badge('failed', 'bad'), ' ', error.message)),
    });
  };
  const element = h('div', {class: 'page'}, h('div', {class: 'page-head'}, h('h1', null, 'Compare')),
    h('form', {class: 'card search-form', onsubmit: start}, field('Left', left), field('Right', right), field('On another ensemble', connect),
      h('button', {type: 'submit', class: 'button primary'}, 'Compare')), status, list);
  if (ctx.params.get('left') && (ctx.params.get('right') || ctx.params.get('connect'))) {
    start();
  }
  return {title: 'Compare', element, close: () => stop?.()};
}

function differenceCard(d, query) {
  const path = d.path || '/';
  const kind = !d.right ? ['only left', 'bad'] : !d.left ? ['only right', 'good'] : ['differs', 'warn'];
  const sideHead = (s, root, link) => h('div', null, s ? [link ? znodeLink(join(root, path.slice(1)).replace(/(.)\/$/, '$1')) : h('span', {class: 'mono'}, path), ' ',
    h('span', {class: 'dim'}, bytes(s.dataLength) + ', version ' + s.version + ', ', time(s.mtime)), s.session && badge('ephemeral')] : h('span', {class: 'dim'}, 'does not exist'));
  return h('details', {class: 'card', open: Boolean(d.data && d.left.dataLength + d.right.dataLength < 2000)},
    h('summary', null, h('span', {class: 'mono'}, path), ' ', badge(...kind), d.data && badge('data'), d.acl && badge('ACL'), d.ephemeral && badge('kind'), d.access && badge('not readable', 'warn')),
    h('div', {class: 'halves'}, sideHead(d.left, query.left, true), sideHead(d.right, query.right, !query.connect)),
    d.data && dataDiff(d.left, d.right),
    d.data && h('details', null, h('summary', null, 'Side by side'), h('div', {class: 'halves'}, [d.left, d.right].map((s, i) =>
      h('pre', {class: 'code short', tabindex: '0', 'aria-label': i ? 'Right' : 'Left'}, dataText(s))))),
    (!d.left || !d.right) && h('pre', {class: 'code short'}, dataText(d.left || d.right)),
    d.acl && diffView(acl(d.left), acl(d.right)));
}

function acl(side) {
  return (side.acl || []).map((a) => a.scheme + ':' + a.id + ':' + a.perms).join('\n');
}
