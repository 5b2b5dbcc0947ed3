// The view of znodes: the tree at the side, the page of the open znode beside it.
import * as api from './api.js';
import {copySubtree} from './copy.js';
import {button, copy, h, remember, replace, setting} from './dom.js';
import {join, parent, znodeHref} from './format.js';
import * as edit from './edit.js';
import {pin, pinned, visited} from './jump.js';
import {follow, tail} from './live.js';
import {page} from './page.js';
import {timeBar} from './past.js';
import * as remove from './remove.js';
import {tree} from './tree.js';

export default function (first) {
  let ctx = first;
  let panel = null; // the tail of the subtree, while a person follows it
  let unfollow = null;

  const note = h('span', {role: 'status'}, 'Znodes');
  let side = newTree();
  const sideBox = h('div', {class: 'side-tree'}, side.element);
  const barBox = h('div');

  function newTree() {
    return tree({
      past: Boolean(api.past()),
      onopen(path) {
        layout.classList.remove('show-tree');
        if (path === ctx.path) {
          side.select(path);
        } else {
          ctx.go(znodeHref(path));
        }
      },
      onread: (text) => (note.textContent = text || 'Znodes'),
    });
  }

  // Shows znodes as of a moment, null for now, also those that a person opens next.
  function travel(at) {
    api.setMoment(at);
    ctx.setParams({at});
    side.close();
    side = newTree();
    replace(sideBox, side.element);
    show();
  }

  const main = page({
    ctx: () => ctx, act, following: () => Boolean(panel),
    showTree: () => {
      layout.classList.add('show-tree');
      side.element.focus();
    },
    updated: (path, stat) => side.update(path, stat),
  });
  const divider = h('div', {class: 'divider', role: 'separator', tabindex: '0', 'aria-orientation': 'vertical', 'aria-label': 'Width of the tree',
    'aria-valuemin': '160', 'aria-valuemax': '800', onpointerdown: drag, onkeydown: (e) => resize(e.key === 'ArrowLeft' ? -16 : e.key === 'ArrowRight' ? 16 : 0)});
  const layout = h('div', {class: 'split'},
    h('div', {class: 'side'}, h('div', null, h('div', {class: 'side-head'}, note,
      button('', () => (barBox.hasChildNodes() && !api.past() ? replace(barBox) : replace(barBox, timeBar(api.past(), travel))),
        {kind: 'quiet', iconName: 'clock', title: 'Show znodes as they were at a moment'}),
      button('', () => side.reload(), {kind: 'quiet', iconName: 'refresh', title: 'Read the tree again'}),
      h('span', {class: 'only-small'}, button('', () => layout.classList.remove('show-tree'), {kind: 'quiet', iconName: 'close', title: 'Close the tree'}))), barBox), sideBox),
    divider, main.element);
  let width = 0;
  setWidth(setting('tree-width', 300));

  function setWidth(next) {
    width = Math.max(160, Math.min(800, next));
    layout.style.setProperty('--tree-width', width + 'px');
    divider.setAttribute('aria-valuenow', String(width));
  }

  function resize(by) {
    if (by) {
      setWidth(width + by);
      remember('tree-width', width);
    }
  }

  function drag(event) {
    divider.setPointerCapture(event.pointerId);
    divider.onpointermove = (e) => setWidth(e.clientX - layout.getBoundingClientRect().left);
    divider.onpointerup = () => {
      divider.onpointermove = divider.onpointerup = null;
      remember('tree-width', width);
    };
  }

  function subscribe() {
    unfollow?.();
    unfollow = null;
    if (api.past()) {
      main.state('past');
      return;
    }
    const recursive = Boolean(panel);
    unfollow = follow(ctx.path, recursive, {
      event(kind, path, data) {
        panel?.add(kind, path, data);
        side.touch(path, kind);
        main.event(kind, path);
      },
      reset() {
        panel?.add('reset', ctx.path, {});
        main.refresh();
        side.reload();
      },
      opened: main.refresh, state: main.state,
    });
  }

  function toggleTail() {
    if (api.past()) {
      return;
    }
    if (panel) {
      panel.close();
      panel.element.remove();
      panel = null;
    } else {
      panel = tail(ctx.path, toggleTail);
      main.place(panel.element);
    }
    ctx.setParams({follow: panel ? '1' : null});
    main.drawHead();
    subscribe();
  }

  // Actions of buttons and keys. Each resolves to the path to open afterwards, or to null.
  async function act(name, items) {
    switch (name) {
      case 'copy':
        await copy(ctx.path);
        ctx.toast('Copied ' + ctx.path);
        return;
      case 'pin':
        pin(ctx.path);
        main.drawHead();
        ctx.toast((pinned(ctx.path) ? 'Pinned ' : 'No longer pinned: ') + ctx.path + (pinned(ctx.path) ? ': Ctrl-K offers it first' : ''));
        return;
      case 'follow':
        toggleTail();
        return;
      case 'refresh':
        main.refresh();
        side.reload();
        return;
      default:
    }
    const reason = api.past() ? 'What is past does not change: go back to now first' : ctx.mayNot('write', 'Your role “' + ctx.role + '” may not change znodes. Log in as another identity, or start the server with gozkd.web=write.');
    if (reason) {
      ctx.toast(reason, 'bad');
      return;
    }
    const seen = await main.seen();
    if (!seen) {
      return;
    }
    const result = items ? await remove.removeSelected(ctx, items)
      : await {edit: edit.editData, acl: edit.editACL, create: edit.createChild, remove: remove.removeZnode, duplicate: copySubtree}[name](ctx, seen);
    if (!result) {
      return;
    }
    if (result.deleted) {
      side.touch(ctx.path, 'deleted');
      ctx.go(znodeHref(parent(ctx.path)));
    } else if (result.created) {
      if (result.moved) {
        side.touch(ctx.path, 'deleted');
      }
      side.touch(result.created, 'created');
      ctx.go(znodeHref(result.created));
    } else {
      items?.forEach((item) => side.touch(join(ctx.path, item.name), 'deleted'));
      main.refresh();
    }
  }

  function show() {
    panel?.close();
    panel = ctx.params.get('follow') && !api.past() ? tail(ctx.path, toggleTail) : null;
    main.show(panel?.element);
    side.select(ctx.path);
    subscribe();
    remember('path', ctx.path);
    visited(ctx.path);
  }

  api.setMoment(ctx.params.get('at'));
  if (api.past()) {
    replace(barBox, timeBar(api.past(), travel));
    travel(api.past());
  } else {
    show();
  }
  const view = {
    title: ctx.path, element: layout,
    update(next) {
      ctx = next;
      view.title = ctx.path;
      layout.classList.remove('show-tree');
      const at = ctx.params.get('at');
      if (at && at !== api.past()) { // a link to another moment
        replace(barBox, timeBar(at, travel));
        travel(at);
        return;
      }
      ctx.setParams({at: api.past()});
      show();
    },
    refresh() {
      main.refresh();
      side.reload();
    },
    close() {
      unfollow?.();
      panel?.close();
      side.close();
      main.close();
      api.setMoment(null);
    },
    keys: {
      j: () => side.move(1), k: () => side.move(-1), h: () => side.left(), l: () => side.right(), ArrowLeft: () => side.left(), ArrowRight: () => side.right(),
      Enter: (e) => (e.target.closest('a, button, summary, tr') ? false : ctx.go(znodeHref(side.cursor()))),
      e: () => act('edit'), a: () => act('acl'), n: () => act('create'), d: () => act('remove'),
      y: () => act('copy'), p: () => act('pin'), m: () => act('duplicate'), f: () => act('follow'), r: () => act('refresh'),
      u: () => ctx.go(znodeHref(parent(ctx.path))),
      Escape: () => layout.classList.remove('show-tree'),
    },
  };
  return view;
}
