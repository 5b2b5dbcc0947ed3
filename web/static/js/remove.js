// Dialogs that delete znodes. Every deletion carries the version that the person saw.
import * as api from './api.js';
import {badge, button, empty, field, h, icon, loading, replace} from './dom.js';
import {createdAgain} from './edit.js';
import {base, bytes, count, join} from './format.js';

/** removeZnode deletes the znode, and everything below after the path was typed. */
export async function removeZnode(ctx, seen) {
  if (ctx.path === '/') {
    return null;
  }
  if (seen.stat.numChildren > 0) {
    return removeSubtree(ctx);
  }
  const done = await ctx.dialog({
    title: 'Delete ' + base(ctx.path), id: 'delete',
    body: [h('p', {class: 'mono break'}, ctx.path), h('p', null, 'Version ' + seen.stat.version + ', ' + bytes(seen.stat.dataLength) + '. A deleted znode comes back only from a backup.')],
    actions: [{label: 'Cancel', value: null}, {label: 'Delete', kind: 'danger', run: async () => {
      if (!await createdAgain(ctx.path, seen.stat)) {
        try {
          await api.remove(ctx.path, seen.stat.version);
          return;
        } catch (error) {
          if (!error.conflict) {
            throw error;
          }
        }
      }
      throw new Error('Somebody changed the znode since you looked at it. Close this window, look again, then delete.');
    }}],
  });
  if (done) {
    ctx.toast('Deleted ' + ctx.path, 'good');
  }
  return done ? {deleted: true} : null;
}

async function removeSubtree(ctx) {
  const preview = h('div', {class: 'stack'}, loading(3));
  const typed = h('input', {class: 'mono', placeholder: ctx.path, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off'});
  const progress = h('p', {class: 'row', role: 'status'});
  let shown = null; // the zxid of what the person sees
  let deleted = 0; // znodes, of a run
  let stop = null;
  const show = () => api.get('subtree', {root: ctx.path}).then((s) => {
    replace(preview, subtreeSummary(s));
    shown = s.zxid;
  }, (error) => {
    replace(preview, h('p', {class: 'dialog-error'}, error.message));
    shown = null;
  });
  const run = async () => {
    if (typed.value !== ctx.path) {
      throw new Error('Type the path ' + ctx.path + ' to confirm.');
    }
    if (!shown) {
      throw new Error('Wait until this window shows what would be deleted.');
    }
    stop = new AbortController();
    try {
      return await deleteRounds(ctx.path, shown, stop, (n) => {
        deleted = n;
        replace(progress, h('span', null, n ? count(n) + ' znodes deleted …' : 'Checking that nothing has changed …'),
          button('Stop', () => stop.abort(), {kind: 'quiet'}));
      });
    } catch (error) {
      await show();
      throw new Error(rest(error, deleted));
    } finally {
      replace(progress);
    }
  };
  show();
  const done = await ctx.dialog({
    title: 'Delete ' + base(ctx.path) + ' and everything below', id: 'delete-subtree',
    body: [preview, field('Type the path to confirm', typed), progress],
    actions: [{label: 'Cancel', value: null}, {label: 'Delete all', kind: 'danger', run}],
  });
  if (!done) {
    stop?.abort();
    return null;
  }
  ctx.toast('Deleted ' + (done.deleted ? count(done.deleted) + ' znodes' : ctx.path), 'good');
  return {deleted: true};
}

/** removeSelected deletes children of the open znode, with everything below them. */
export async function removeSelected(ctx, items) {
  const deep = items.filter((item) => item.stat?.numChildren > 0).length;
  const word = String(items.length);
  const typed = h('input', {class: 'mono', placeholder: word, inputmode: 'numeric', autocomplete: 'off'});
  const progress = h('p', {class: 'row', role: 'status'});
  let gone = 0;
  let stop = null;
  const removeOne = async (item) => {
    const path = join(ctx.path, item.name);
    if (item.stat?.numChildren > 0) {
      const {zxid} = await api.get('subtree', {root: path}, {signal: stop.signal});
      await deleteRounds(path, zxid, stop, () => null);
    } else if (!item.stat || await createdAgain(path, item.stat)) {
      throw new Error(path + (item.stat ? ' was created again since you looked at it.' : ' could not be read, so it is not deleted.'));
    } else {
      await api.remove(path, item.stat.version);
    }
  };
  const run = async () => {
    if (deep > 0 && typed.value !== word) {
      throw new Error('Type ' + word + ' to confirm.');
    }
    stop = new AbortController();
    try {
      for (; gone < items.length; gone++) {
        replace(progress, h('span', null, count(gone) + ' of ' + count(items.length) + ' deleted …'), button('Stop', () => stop.abort(), {kind: 'quiet'}));
        stop.signal.throwIfAborted();
        await removeOne(items[gone]);
      }
    } catch (error) {
      throw new Error((error.name === 'AbortError' ? 'Stopped.' : error.message) + ' ' + count(gone) + ' of ' + count(items.length) + ' were deleted. Close this window to see what is left.');
    } finally {
      replace(progress);
    }
  };
  const done = await ctx.dialog({
    title: 'Delete ' + count(items.length) + (items.length === 1 ? ' child of ' : ' children of ') + ctx.path, id: 'delete-selected',
    body: [h('pre', {class: 'code short'}, items.slice(0, 100).map((item) => item.name).join('\n') + (items.length > 100 ? '\n…' : '')),
      deep > 0 && h('p', null, icon('warn'), ' ', h('strong', null, count(deep) + (deep === 1 ? ' has' : ' have') + ' children'), ', which go with ' + (deep === 1 ? 'it' : 'them') + '.'),
      h('p', null, 'A deleted znode comes back only from a backup.'), deep > 0 && field('Type ' + word + ' to confirm', typed), progress],
    actions: [{label: 'Cancel', value: null}, {label: 'Delete', kind: 'danger', run}],
  });
  stop?.abort();
  if (done) {
    ctx.toast('Deleted ' + count(items.length) + ' znodes', 'good');
  }
  return gone > 0 ? {} : null;
}

/** deleteRounds deletes a subtree in as many requests as it takes; tell hears how many znodes have gone. */
export async function deleteRounds(path, zxid, stop, tell) {
  let before = 0;
  for (let end = {more: true}; end.more; before += end.deleted) {
    tell(before);
    end = null;
    const response = await api.request('POST', 'ui/api/delete', {
      body: JSON.stringify({path, confirm: path, zxid}), headers: {'Content-Type': 'application/json'}, signal: stop.signal});
    await api.parts(response, {progress: (d) => tell(before + d.deleted), end: (d) => {
      end = d;
    }});
    if (!end || end.error) {
      throw new Error(end ? end.error : 'The server ended its answer too early.');
    }
  }
  return {deleted: before};
}

function rest(error, deleted) {
  const done = deleted ? count(deleted) + ' znodes were deleted; this window shows what is left.' : 'Nothing was deleted. Look again, then delete.';
  return error.name === 'AbortError' ? 'Stopped. ' + done : (error.body?.detail || error.message) + ' ' + done;
}

function subtreeSummary(s) {
  const sessions = s.sessions || [];
  return [
    h('p', null, icon('warn'), ' ', h('strong', null, count(s.znodes ?? s.count) + (s.truncated ? ' or more' : '') + ' znodes'), ' with ' + bytes(s.bytes ?? 0) + ' are deleted permanently.'),
    s.ephemerals > 0 && h('p', null, badge(count(s.ephemerals) + ' ephemeral', 'warn'), ' of ' + sessions.length + (sessions.length === 1 ? ' session: a live client' : ' sessions: live clients') + ' may depend on them.'),
    s.paths?.length > 0 ? h('pre', {class: 'code short'}, s.paths.slice(0, 100).join('\n') + (s.paths.length > 100 || s.truncated ? '\n…' : '')) : s.znodes === 0 && empty('Nothing below'),
  ];
}
