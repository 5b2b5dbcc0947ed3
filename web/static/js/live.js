// Follows the open znode, or its subtree, and keeps the last events for the panel.
import * as api from './api.js';
import {barred} from './health.js';
import {badge, button, empty, h, replace} from './dom.js';
import {znodeLink} from './format.js';

const maxEvents = 200;

/**
 * follow subscribes to a path. on.event(kind, path) and on.reset() tell of changes; on.state(text)
 * of the connection: 'connecting', 'live', 'stale' (without a quorum), 'lost', 'paused'. on.opened() tells that changes are
 * reported from now on: what was read before may be out of date. While the page is hidden the stream
 * is closed: a browser opens only six connections to a server, and a person may have many tabs.
 */
export function follow(path, recursive, on) {
  let stop = null;
  let missed = false;
  let live = false;
  const handle = (kind) => (data) => on.event(kind, data.path || path, data);
  const open = () => {
    on.state('connecting');
    stop = api.events(path, recursive, {
      created: handle('created'), changed: handle('changed'), deleted: handle('deleted'), children: handle('children'),
      reset: () => on.reset(),
      open: () => {
        live = true;
        state();
        if (missed) {
          missed = false;
          on.reset();
        } else {
          on.opened();
        }
      },
      lost: (givenUp) => {
        missed ||= givenUp;
        live = false;
        on.state('lost');
      },
    });
  };
  const state = () => live && on.state(barred() ? 'stale' : 'live');
  const visible = () => {
    if (document.hidden && stop) {
      live = false;
      stop();
      stop = null;
      missed = true;
      on.state('paused');
    } else if (!document.hidden && !stop) {
      open();
    }
  };
  document.addEventListener('visibilitychange', visible);
  addEventListener('health', state);
  if (!document.hidden) {
    open();
  }
  return () => {
    document.removeEventListener('visibilitychange', visible);
    removeEventListener('health', state);
    stop?.();
  };
}

// missed reports whether an event happened while there was no stream: nobody knows when.
function missed(kind, data) {
  return kind !== 'reset' && !data.time;
}

const kinds = {created: 'good', changed: 'accent', deleted: 'bad', children: '', reset: 'warn'};

/** tail is the panel with the last events of a subtree. */
export function tail(path, onclose) {
  const body = h('tbody');
  const rate = h('span', {class: 'dim'});
  const none = h('div');
  const times = [];
  let paused = false;
  const measure = () => {
    const now = Date.now();
    while (times.length > 0 && times[0] < now - 10000) {
      times.shift();
    }
    rate.textContent = (times.length / 10).toFixed(1) + ' per second';
  };
  const timer = setInterval(measure, 2000);
  const queue = []; // events that are not drawn yet
  let frame = 0;
  const draw = () => {
    frame = 0;
    none.hidden = true;
    measure();
    body.prepend(...queue.splice(0).reverse().map(row));
    while (body.children.length > maxEvents) {
      body.lastChild.remove();
    }
  };
  const row = ({kind, where, data, at}) => h('tr', {class: 'flash'},
    h('td', {class: 'nowrap dim num', title: missed(kind, data) ? 'It happened while this page had no connection' : null},
      missed(kind, data) ? 'before' : new Date(Number(data.time) || at).toLocaleTimeString('en-GB')),
    h('td', null, badge(kind, kinds[kind])), h('td', {class: 'break'}, kind === 'reset' ? 'Events were missed; everything was read again.' : znodeLink(where)),
    h('td', {class: 'mono dim nowrap hide-small'}, data.zxid || ''));
  const pause = button('Pause', () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
  }, {kind: 'quiet', pressed: false, title: 'Stop adding rows; events are still counted'});
  replace(none, empty('Waiting for changes', 'Whatever is created, changed or deleted in ' + path + ' and below appears here.'));
  measure();
  return {
    element: h('section', {class: 'card tail', 'aria-label': 'Changes'},
      h('header', null, h('h2', null, 'Changes'), rate, pause,
        button('Clear', () => replace(body), {kind: 'quiet'}), button('', onclose, {kind: 'quiet', iconName: 'close', title: 'Stop following the subtree'})),
      h('div', {class: 'tail-rows', tabindex: '0', 'aria-label': 'Last changes'}, h('table', null, body), none)),
    add(kind, where, data) {
      times.push(Date.now());
      if (paused) {
        return;
      }
      queue.push({kind, where, data, at: Date.now()});
      if (queue.length > maxEvents) {
        queue.shift();
      }
      frame ||= requestAnimationFrame(draw);
    },
    close: () => clearInterval(timer),
  };
}
