// Earlier versions of a znode, from the archive.
import {badge, button, field, h, replace} from '../js/dom.js';
import {bytes, normal, time, znodeHref, znodeLink} from '../js/format.js';
import {noArchive} from '../js/past.js';
import {dataDiff, dataText, page, sessionLink} from './list.js';

export default function (ctx) {
  const path = ctx.params.get('path') || '';
  const input = h('input', {value: path, placeholder: '/app/config', spellcheck: 'false', 'aria-label': 'Path of a znode'});
  const form = h('form', {class: 'row', onsubmit: (event) => {
    event.preventDefault();
    ctx.go('#/history?path=' + encodeURIComponent(normal(input.value)));
  }}, field('', input), h('button', {type: 'submit', class: 'button'}, 'Show'));
  const read = (before) => ctx.api.get('history', {path, before, limit: 20});
  return page({title: 'History', head: form, load: async () => (path ? read().catch(without) : null), draw: (first) => {
    if (first?.without) {
      return noArchive();
    }
    if (!first) {
      return h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, 'Which znode?'), h('p', null, 'Type a path above. An archive of the log has its earlier versions.'));
    }
    const versions = [];
    const list = h('div', {class: 'stack'});
    const chosen = {from: 1, to: 0};
    const between = h('div', {'aria-live': 'polite'});
    const compare = () => replace(between, versions.length > 1 && h('section', {class: 'card'},
      h('header', null, h('h3', null, 'Difference'), h('span', {class: 'mono dim'}, versions[chosen.from].zxid + ' to ' + versions[chosen.to].zxid)),
      dataDiff(versions[chosen.from], versions[chosen.to])));
    const choose = (side, i) => h('label', {class: 'row'}, h('input', {type: 'radio', name: 'history-' + side, checked: chosen[side] === i, onchange: () => {
      chosen[side] = i;
      compare();
    }}), side === 'from' ? 'from' : 'to');
    const add = (answer) => {
      for (const v of answer.versions) {
        const i = versions.push(v) - 1;
        list.append(versionCard(path, v, [choose('from', i), choose('to', i)]));
      }
      compare();
      if (answer.next) {
        const more = button('Older versions', async () => {
          more.disabled = true;
          try {
            const next = await read(answer.next);
            more.remove();
            add(next);
          } catch (error) {
            more.disabled = false;
            ctx.toast(error.message, 'bad');
          }
        });
        list.append(more);
      }
    };
    add(first);
    return [h('div', {class: 'row'}, znodeLink(first.path), h('span', {class: 'dim'}, 'archived up to ', time(first.until)),
      first.hidden ? badge('some versions were not readable for you', 'warn') : null),
    versions.length === 0 && !first.next ? h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, 'No versions'), h('p', null, 'The archive has no change of this znode. New changes appear after some seconds.')) : null,
    between, list];
  }});
}

// without is shown instead of the error of a server that has no archive.
function without(error) {
  if (error.status !== 501) {
    throw error;
  }
  return {without: true};
}

const kinds = {created: ['created', 'good'], changed: ['changed', ''], acl: ['ACL', ''], deleted: ['deleted', 'bad'], earlier: ['as the archive begins', ''], gap: ['the archive has a gap here', 'warn']};

function versionCard(path, v, choices) {
  return h('section', {class: 'card'},
    h('header', null, time(v.time), badge(...kinds[v.change]), h('span', {class: 'mono dim'}, v.zxid),
      v.acl && h('span', {class: 'dim'}, 'version ' + v.version + ', ' + bytes(v.dataLength)), choices,
      v.acl && h('a', {href: znodeHref(path) + '?at=' + v.zxid}, 'The tree then')),
    h('div', {class: 'row'}, v.op && h('span', {class: 'mono dim'}, v.op), v.session && sessionLink(v.session), (v.by || []).map((who) => badge(who))),
    v.data && h('details', null, h('summary', null, 'Data'), h('pre', {class: 'code short'}, dataText(v))));
}
