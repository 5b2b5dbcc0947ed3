// Earlier versions of a znode, from the archive.
import {badge, field, h} from '../js/dom.js';
import {diffView} from '../js/diff.js';
import {bytes, normal, time, znodeLink} from '../js/format.js';
import {page, sessionLink} from './list.js';

export default function (ctx) {
  const path = ctx.params.get('path') || '';
  const input = h('input', {value: path, placeholder: '/app/config', spellcheck: 'false'});
  const form = h('form', {class: 'row', onsubmit: (event) => {
    event.preventDefault();
    ctx.go('#/history?path=' + encodeURIComponent(normal(input.value)));
  }}, field('', input), h('button', {type: 'submit', class: 'button'}, 'Show'));
  return page({title: 'History', head: form, load: async () => (path ? ctx.api.get('history', {path}) : null), draw: (data) => {
    if (!data) {
      return h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, 'Which znode?'), h('p', null, 'Type a path above. An archive of the log has its earlier versions.'));
    }
    const text = (v) => (v?.data ? new TextDecoder().decode(Uint8Array.from(atob(v.data), (c) => c.charCodeAt(0))) : '');
    return [h('p', null, znodeLink(data.path)), (data.versions || []).map((v, i) => h('details', {class: 'card', open: i === 0},
      h('summary', null, time(v.time), ' ', badge(v.change, v.change === 'deleted' ? 'bad' : ''), h('span', {class: 'mono dim'}, ' ' + v.zxid + ' ' + bytes(text(v).length)), ' ', v.session && sessionLink(v.session)),
      diffView(text(data.versions[i + 1]), text(v))))];
  }});
}
