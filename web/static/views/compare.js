// Differences of two subtrees, also of two ensembles.
import {many} from '../js/apps.js';
import {badge, field, h, replace} from '../js/dom.js';
import {diffView} from '../js/diff.js';
import {bytes, count, join, normal, when, znodeLink} from '../js/format.js';
import {dataDiff, dataText, flow} from './list.js';
import {reasons} from './search.js';

const kinds = [['only left', 'bad'], ['only right', 'good'], ['differs', 'warn']];

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
      difference: (d) => list.append(differenceCard(d, kinds, (i) => {
        const path = join(i ? query.right : query.left, (d.path || '/').slice(1)).replace(/(.)\/$/, '$1');
        return i && query.connect ? h('span', {class: 'mono'}, d.path || '/') : znodeLink(path);
      })),
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

/**
 * differenceCard shows a difference {path, left, right, data, acl, ephemeral, access}; a side is null if
 * the znode does not exist there. kinds has a label each for the left side alone, the right one alone,
 * and both; link(i) shows the name of the left side (0) or the right one (1).
 */
export function differenceCard(d, kinds, link) {
  const sides = [d.left, d.right];
  const kind = kinds[!d.right ? 0 : !d.left ? 1 : 2];
  const large = sides.some((s) => s?.large);
  const head = (s, i) => h('div', null, !s ? h('span', {class: 'dim'}, 'does not exist') : [link(i), ' ',
    h('span', {class: 'dim'}, s.denied ? 'not readable' : [bytes(s.dataLength) + ', version ' + s.version + ', ', when(s.mtime)]), s.session && badge('ephemeral')]);
  return h('details', {class: 'card', open: Boolean(d.data && !large && d.left.dataLength + d.right.dataLength < 2000)},
    h('summary', null, h('span', {class: 'mono'}, d.path || '/'), ' ', badge(...kind), d.data && badge('data'), d.acl && badge('ACL'), d.ephemeral && badge('kind'), d.access && badge('not readable', 'warn')),
    h('div', {class: 'halves'}, sides.map(head)),
    large && (d.data || !d.left || !d.right) ? h('p', {class: 'dim'}, 'The data are too large to be shown here.') : [
      d.data && dataDiff(d.left, d.right),
      d.data && h('details', null, h('summary', null, 'Side by side'), h('div', {class: 'halves'}, sides.map((s, i) =>
        h('pre', {class: 'code short', tabindex: '0', 'aria-label': i ? 'Right' : 'Left'}, dataText(s))))),
      (!d.left || !d.right) && h('pre', {class: 'code short'}, dataText(d.left || d.right)),
    ],
    d.acl && diffView(acl(d.left), acl(d.right)));
}

function acl(side) {
  return (side.acl || []).map((a) => a.scheme + ':' + a.id + ':' + a.perms).join('\n');
}
