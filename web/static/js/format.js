// Numbers, sizes, times and paths as text. All functions except time are pure.
import {badge, h} from './dom.js';

/** count writes a number with separators: 12,345. */
export function count(n) {
  return n === null || n === undefined ? '–' : Number(n).toLocaleString('en-US');
}

/** compact writes a number in at most five characters: 999, 12.3k, 4.5M. */
export function compact(n) {
  const units = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  for (const [size, unit] of units) {
    if (n >= size) {
      return (n / size).toFixed(n >= 100 * size ? 0 : 1).replace(/\.0$/, '') + unit;
    }
  }
  return String(n);
}

/** bytes writes a size: 17 B, 1.2 KiB. */
export function bytes(n) {
  if (n === null || n === undefined) {
    return '–';
  }
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) {
    n /= 1024;
  }
  return (i === 0 ? n : n.toFixed(n < 10 ? 1 : 0)) + ' ' + units[i];
}

/** duration writes milliseconds in at most two units: 40 µs, 350 ms, 4.2 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) {
    return '–';
  }
  if (ms > 0 && ms < 1) {
    return Math.ceil(1000 * ms) + ' µs';
  }
  if (ms < 1000) {
    return (ms < 10 && ms % 1 ? ms.toFixed(1) : Math.round(ms)) + ' ms';
  }
  const s = ms / 1000;
  if (s < 60) {
    return (s < 10 && s % 1 >= 0.05 ? s.toFixed(1) : Math.floor(s)) + ' s';
  }
  const parts = [['d', Math.floor(s / 86400)], ['h', Math.floor(s / 3600) % 24],
    ['min', Math.floor(s / 60) % 60], ['s', Math.floor(s) % 60]];
  const first = parts.findIndex((p) => p[1] > 0);
  return parts.slice(first, first + 2).filter((p) => p[1] > 0).map(([unit, n]) => n + ' ' + unit).join(' ');
}

/** ago writes how long ago a time in milliseconds was: 'now', '3 min ago', '12 Mar 2024'. */
export function ago(ms, now = Date.now()) {
  const past = now - ms;
  if (past < -2000) {
    return 'in ' + duration(-past);
  }
  if (past < 2000) {
    return 'now';
  }
  if (past < 60000) {
    return Math.floor(past / 1000) + ' s ago';
  }
  if (past < 3600000) {
    return Math.floor(past / 60000) + ' min ago';
  }
  if (past < 48 * 3600000) {
    return Math.floor(past / 3600000) + ' h ago';
  }
  if (past < 60 * 86400000) {
    return Math.floor(past / 86400000) + ' days ago';
  }
  return new Date(ms).toLocaleDateString('en-GB', {day: 'numeric', month: 'short', year: 'numeric'});
}

/** time creates an element with a relative time that stays up to date; hovering shows the exact one. */
export function time(ms) {
  if (!ms) {
    return h('span', {class: 'dim'}, '–');
  }
  const iso = new Date(ms).toISOString();
  return h('time', {datetime: iso, title: iso.replace('T', ' ').replace('Z', ' UTC'), dataset: {ago: ms}}, ago(ms));
}

/** when shows a time as time does, with the clock beside it. */
export function when(ms) {
  return [h('span', {class: 'nowrap'}, time(ms)), ms > 0 && [' ', h('span', {class: 'dim nowrap'}, clock(ms))]];
}

/** clock writes the time of day, and the day unless that is today. */
export function clock(ms) {
  const [day, today] = [new Date(ms), new Date()].map((d) => d.toDateString());
  return day === today ? new Date(ms).toLocaleTimeString('en-GB') : new Date(ms).toLocaleString('en-GB');
}

/** tickTimes rewrites the relative times of the page. The shell calls it every few seconds. */
export function tickTimes() {
  if (document.hidden) {
    return;
  }
  for (const element of document.querySelectorAll('time[data-ago]')) {
    const text = ago(Number(element.dataset.ago));
    if (element.textContent !== text) {
      element.textContent = text;
    }
  }
}

/** encodePath makes the part of an address from a znode path: each name is percent-encoded. */
export function encodePath(path) {
  return path.split('/').map(encodeURIComponent).join('/');
}

/** decodePath is the inverse of encodePath. A broken escape stays as it is. */
export function decodePath(text) {
  return text.split('/').map((name) => {
    try {
      return decodeURIComponent(name);
    } catch (e) {
      return name;
    }
  }).join('/');
}

/** normal makes a typed path absolute, without empty names and without a slash at the end. */
export function normal(path) {
  return '/' + path.trim().split('/').filter(Boolean).join('/');
}

/** join appends a name to a path. */
export function join(path, name) {
  return path === '/' ? '/' + name : path + '/' + name;
}

/** parent returns the path above; the root is its own parent. */
export function parent(path) {
  return path.slice(0, Math.max(1, path.lastIndexOf('/')));
}

/** base returns the last name of a path. */
export function base(path) {
  return path === '/' ? '/' : path.slice(path.lastIndexOf('/') + 1);
}

/** znodeHref returns the address of a znode in the explorer. */
export function znodeHref(path) {
  return '#/z' + encodePath(path);
}

/** znodeLink creates a link to a znode. */
export function znodeLink(path, text = path) {
  return h('a', {class: 'mono', href: znodeHref(path)}, text);
}

/** overHTTP reports whether a client's address is that of a caller of the explorer or of REST: their port is 0. */
export function overHTTP(address) {
  return Boolean(address?.endsWith(':0'));
}

/** client shows a client's address. */
export function client(address) {
  return overHTTP(address) ? [h('span', {class: 'mono'}, address.slice(0, -2)), ' ', badge('HTTP', '', 'Uses the explorer or the REST interface')]
    : h('span', {class: 'mono'}, address || '–');
}

/** clipped shows a name that may be too long for its place: the end, where sequence numbers are, stays. */
export function clipped(name) {
  const cut = name.length > 24 ? name.length - 11 : name.length;
  return [h('span', {class: 'clip'}, name.slice(0, cut)), cut < name.length && h('span', null, name.slice(cut))];
}
