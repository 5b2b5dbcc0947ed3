// What the views of this directory share.
import {diffView} from '../js/diff.js';
import {badge, button, h, keepFocus, loading, problem, replace} from '../js/dom.js';
import {count} from '../js/format.js';
import {formatted} from '../js/viewers/json.js';

/**
 * page builds a view that reads something and shows it: load() returns the data, draw(data, keep) the
 * elements. keep(name, make) returns what make returned the first time: a table that keeps its order
 * and its rows. The view reads again with r, and every interval milliseconds if given, but does not draw
 * while a person selects text or presses the mouse in it. Returns a view for the shell, with reload().
 */
export function page({title, head = [], load, draw, interval = 0, hint = ''}) {
  const kept = new Map();
  const keep = (name, make) => kept.get(name) || kept.set(name, make()).get(name);
  let pressed = false;
  const press = (event) => {
    pressed = event.type === 'pointerdown';
  };
  const release = (event) => setTimeout(press, 0, event); // after the click
  const body = h('div', {class: 'stack', onpointerdown: press}, loading(6));
  const busy = () => pressed || (!getSelection().isCollapsed && body.contains(getSelection().anchorNode));
  let timer = 0;
  let closed = false;
  const show = (make) => {
    const restore = keepFocus(body);
    replace(body, make());
    restore();
  };
  let visit = 0; // of the last reload: the answers of earlier ones are out of date
  const reload = async (polled) => {
    clearTimeout(timer);
    const mine = ++visit;
    try {
      const data = await load();
      if (!closed && mine === visit && !(polled === true && busy())) {
        show(() => draw(data, keep));
      }
    } catch (error) {
      if (!closed && mine === visit && error.name !== 'AbortError') {
        show(() => problem(error, reload));
      }
    }
    if (mine === visit) {
      poll();
    }
  };
  const poll = () => {
    if (interval && !closed) {
      timer = setTimeout(() => (document.hidden ? poll() : reload(true)), interval);
    }
  };
  const element = h('div', {class: 'page'}, h('div', {class: 'page-head'}, h('h1', null, title), head,
    button('', reload, {kind: 'quiet', iconName: 'refresh', title: 'Read again (r)'})), hint && h('p', {class: 'dim'}, hint), body);
  addEventListener('pointerup', release);
  addEventListener('pointercancel', release);
  reload();
  return {
    title, element, reload, body, refresh: reload, keys: {r: () => {
      reload();
    }},
    close() {
      closed = true;
      clearTimeout(timer);
      removeEventListener('pointerup', release);
      removeEventListener('pointercancel', release);
    },
  };
}

/** sessionLink leads to a session. */
export function sessionLink(id) {
  return id ? h('a', {class: 'mono', href: '#/sessions?filter=' + id}, id) : h('span', {class: 'dim'}, 'none');
}

/** mayEnd returns why the person may not end sessions, or ''. */
export function mayEnd(ctx) {
  return ctx.mayNot('admin', 'Ending sessions needs the role admin');
}

/** endSession asks, ends a session {id, address, ephemerals}, and calls done. */
export async function endSession(ctx, s, done) {
  const lost = s.ephemerals === 0 ? 'It has no ephemeral znodes.'
    : h('b', null, s.ephemerals === 1 ? 'Its ephemeral znode is' : 'Its ' + (s.ephemerals ? count(s.ephemerals) + ' ' : '') + 'ephemeral znodes are', ' deleted, and its locks released.');
  const ended = await ctx.dialog({
    title: 'End session ' + s.id + '?',
    body: [h('p', null, 'The client ', h('b', null, s.address || 'of another server'), ' learns that its session has expired. ', lost)],
    actions: [{label: 'Cancel', value: false}, {label: 'End the session', kind: 'danger', run: () => ctx.api.post('sessions/' + s.id + '/end')}],
  });
  if (ended) {
    ctx.toast('Session ' + s.id + ' has ended.', 'good');
    done();
  }
}

/** more says that an answer was cut off. */
export function more(truncated) {
  return truncated ? badge('more exist', 'warn', 'The answer has a bound. Narrow the filter to see the rest.') : null;
}

/** flow reads server-sent events from fetch once, without reconnecting; returns a function that stops it. */
export function flow(api, path, query, handlers) {
  const stop = new AbortController();
  (async () => {
    try {
      const response = await api.request('GET', path, {query, signal: stop.signal});
      await api.parts(response, handlers);
      handlers.closed?.();
    } catch (error) {
      if (error.name !== 'AbortError') {
        handlers.failed(error);
      }
    }
  })();
  return () => stop.abort();
}

/**
 * dataDiff shows the differences of two sides' data by line. JSON is formatted first, unless only its
 * white space differs.
 */
export function dataDiff(from, to, label) {
  const texts = [dataText(from), dataText(to)];
  const [left, right] = texts.map(formatted);
  return diffView(...(left === right ? texts : [left, right]), label);
}

/** dataText shows the data of a znode as text, or as hex if it is none. */
export function dataText(side) {
  const data = Uint8Array.from(atob(side.data || ''), (c) => c.charCodeAt(0));
  const end = side.cut ? '\n… (cut off)' : '';
  try {
    return new TextDecoder('utf-8', {fatal: !side.cut}).decode(data) + end;
  } catch (error) {
    return [...data].map((b, i) => b.toString(16).padStart(2, '0') + (i % 16 === 15 ? '\n' : ' ')).join('') + end;
  }
}
