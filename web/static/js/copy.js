// The dialog that copies or moves a subtree, by an export and an import of it.
import * as api from './api.js';
import {many} from './apps.js';
import {field, h} from './dom.js';
import {bytes, count, normal} from './format.js';
import {deleteRounds} from './remove.js';

/** copySubtree copies the znode with everything below it to another path, and deletes it if a person wants to move it. */
export async function copySubtree(ctx) {
  const to = h('input', {class: 'mono', value: ctx.path === '/' ? '' : ctx.path + '-copy', placeholder: '/app-copy', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off'});
  const move = h('input', {type: 'checkbox', disabled: ctx.path === '/'});
  const progress = h('p', {class: 'dim', role: 'status'}, 'Counting …');
  const counted = api.get('subtree', {root: ctx.path});
  counted.then((s) => (progress.textContent = many(s.znodes, 'znode') + (s.truncated ? ' or more' : '') + ', ' + bytes(s.bytes) + '.'), () => (progress.textContent = ''));
  const run = async () => {
    const target = normal(to.value);
    if (target === ctx.path || target.startsWith(ctx.path + '/')) {
      throw new Error('Choose a path outside of ' + ctx.path + '.');
    }
    const seen = await counted;
    if (move.checked && (seen.ephemerals || seen.denied)) {
      throw new Error('It cannot be moved: ' + (seen.denied ? 'you may not read all of it.' : 'it has ' + many(seen.ephemerals, 'ephemeral znode of a client', 'ephemeral znodes of clients') + '. Copy it instead.'));
    }
    progress.textContent = 'Copying …';
    const file = await (await api.request('GET', 'ui/api/export', {query: {root: ctx.path}})).blob();
    const done = await (await api.request('POST', 'ui/api/import', {query: {root: target, existing: 'refuse'}, body: file, headers: {'Content-Type': 'application/x-ndjson'}})).json();
    if (move.checked) {
      await deleteRounds(ctx.path, seen.zxid, new AbortController(), (n) => (progress.textContent = count(n) + ' of the original deleted …')).catch((error) => {
        throw new Error('It was copied to ' + target + ', but the original stays, in whole or in part: ' + error.message);
      });
    }
    return {...done, target};
  };
  const done = await ctx.dialog({
    title: 'Copy or move ' + ctx.path, id: 'copy',
    body: [progress, field('To', to), h('label', {class: 'check'}, move, 'Move: delete the original afterwards'),
      h('p', {class: 'hint'}, 'Data, ACLs and kinds are copied, versions begin at 0. Ephemeral znodes stay with their clients. Nothing that exists is overwritten.')],
    actions: [{label: 'Cancel', value: null}, {label: 'Copy', kind: 'primary', run}],
  });
  if (!done) {
    return null;
  }
  ctx.toast(many(done.created, 'znode') + (move.checked ? ' moved' : ' copied') + ' to ' + done.target, 'good');
  return {created: done.target, moved: move.checked};
}
