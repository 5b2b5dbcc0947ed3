// The children of the open znode, as a table that reads pages while a person scrolls.
import * as api from './api.js';
import {button, copy, debounce, empty, h, icon, problem, replace} from './dom.js';
import {exportSelected} from './export.js';
import {bytes, clipped, count, join, time, znodeHref} from './format.js';
import {compare, filterBox, virtualList} from './list.js';
import {Pages, bigPage} from './pages.js';
import {kindBadge} from './tree.js';

const rowHeight = 28;
const leastShown = 14; // rows in sight before the list scrolls, also in a low window
const around = 260; // pixels of a window that the table leaves to what is above it

// Columns: key, heading, what it is sorted by, class.
const columns = [
  ['name', 'Name', (item) => item.name, 'child-name'],
  ['children', 'Children', (item) => item.stat?.numChildren ?? -1, 'child-children num'],
  ['size', 'Size', (item) => item.stat?.dataLength ?? -1, 'child-size num'],
  ['version', 'Version', (item) => item.stat?.version ?? -1, 'child-version num hide-narrow'],
  ['changed', 'Changed', (item) => item.stat?.mtime ?? 0, 'child-time num hide-narrow'],
];

/**
 * childTable reads the first page at once: first is its promise. remove(items) deletes the znodes
 * that a person has selected, and mayNot() says why that person may not.
 */
export function childTable(path, {remove, mayNot}) {
  let pages = new Pages(path);
  let order = null; // {by, descending}: not that of the server, so all children are read
  let sorted = null; // the items in that order, null for that of the server
  let sorting = 0; // how many sorts read the rest of the children: nothing is read again meanwhile
  const fresh = new Set();
  const selected = new Map(); // name to item
  const title = h('h2', null, 'Children');
  const note = h('div', {role: 'status'});
  const progress = h('div', {class: 'row', role: 'status'});
  const bar = h('div', {class: 'row child-selection'});
  const all = h('input', {type: 'checkbox', 'aria-label': 'Select all children that were read', onchange: () => {
    selected.clear();
    if (all.checked) {
      pages.items.forEach((item) => selected.set(item.name, item));
    }
    draw();
  }});
  const shown = api.past() ? columns.slice(0, 1) : columns; // lists of the past have no Stats
  const heads = shown.map(([key, heading, , cls]) => h('span', {class: cls, role: 'columnheader'},
    h('button', {type: 'button', class: 'sort', onclick: () => sortBy(key)}, heading, icon('chevron'))));
  const list = virtualList({
    count: () => pages.total, row, rowHeight,
    props: {class: 'child-list', tabindex: '-1', role: 'rowgroup'},
    onvisible: (first, last) => {
      const end = pages.prefix ? last + 1 : last; // how many begin with the prefix is not known
      for (let i = first; i < end && !pages.complete && !pages.reading; i++) {
        if (!pages.item(i)) {
          read(i);
          return;
        }
      }
    },
  });
  const table = h('div', {role: 'table', 'aria-label': 'Children'},
    h('div', {class: 'child-row child-head', role: 'row'}, h('span', {role: 'columnheader'}, all), heads), list.element);

  async function read(i) {
    try {
      await pages.show(i);
    } catch (error) {
      replace(note, problem(error, () => read(i)));
      return;
    }
    draw();
  }

  // The server's order needs no more than what is in sight. Any other one needs all children.
  async function sortBy(by) {
    const natural = columns.find(([key]) => key === by)[2];
    const descending = order?.by === by ? !order.descending : by !== 'name';
    const mine = order = {by, descending, value: natural};
    const reading = pages;
    sorting++;
    try {
      while (!reading.complete && order === mine && reading === pages) {
        replace(note, h('p', {class: 'dim'}, 'Sorting needs all children: ' + count(reading.items.length) + ' of ' + count(reading.total) + ' read …'));
        await reading.more(reading.total);
      }
    } catch (error) {
      order = null;
      replace(note, problem(error, () => sortBy(by)));
      return;
    } finally {
      sorting--;
    }
    if (order !== mine || reading !== pages) {
      return; // a person wants something else by now
    }
    list.element.scrollTop = 0;
    draw();
  }

  function arrange() {
    sorted = null;
    if (order && pages.complete) {
      const {value, descending} = order;
      sorted = [...pages.items].sort((a, b) => (descending ? -1 : 1) * (compare(value(a), value(b)) || compare(a.name, b.name)));
    }
    shown.forEach(([key], i) => {
      if (order?.by === key) {
        heads[i].setAttribute('aria-sort', order.descending ? 'descending' : 'ascending');
      } else {
        heads[i].removeAttribute('aria-sort');
      }
    });
  }

  function draw() {
    arrange();
    title.textContent = 'Children ' + (pages.prefix ? '(' + count(pages.items.length) + (pages.complete ? '' : '+') + ' match)' : '');
    replace(note, pages.items.length === 0 && pages.prefix ? empty('No child begins with “' + pages.prefix + '”') : null);
    all.checked = selected.size > 0 && selected.size === pages.items.length;
    all.indeterminate = selected.size > 0 && !all.checked;
    replace(bar, selected.size > 0 && [h('strong', null, count(selected.size) + ' selected'),
      button('Delete', () => remove([...selected.values()]), {kind: 'danger', iconName: 'trash', reason: mayNot()}),
      button('Export', () => exportSelected(path, [...selected.keys()], progress), {iconName: 'download', reason: api.past() && 'An export is of the present'}),
      button('Copy paths', () => copy([...selected.keys()].map((name) => join(path, name)).join('\n')), {iconName: 'copy'}),
      button('Clear', () => {
        selected.clear();
        draw();
      }, {kind: 'quiet'})]);
    const fits = Math.max(leastShown, Math.floor((window.innerHeight - around) / rowHeight));
    list.element.style.height = Math.min(fits, Math.max(1, pages.total)) * rowHeight + 'px';
    table.hidden = pages.items.length === 0;
    list.refresh();
  }

  function row(i) {
    const item = sorted ? sorted[i] : pages.item(i);
    if (!item) {
      return h('div', {class: 'child-row', role: 'row'}, h('span', {class: 'bone', role: 'cell'}));
    }
    const flash = fresh.delete(item.name);
    const stat = item.stat;
    const cell = (k, content) => h('span', {class: columns[k][3], role: 'cell'}, content);
    return h('div', {class: 'child-row' + (flash ? ' flash' : ''), role: 'row', 'aria-rowindex': i + 2},
      h('span', {role: 'cell'}, h('input', {type: 'checkbox', checked: selected.has(item.name), 'aria-label': 'Select ' + item.name, onchange: (e) => {
        if (e.target.checked) {
          selected.set(item.name, item);
        } else {
          selected.delete(item.name);
        }
        draw();
      }})),
      cell(0, [h('a', {class: 'mono clips', href: znodeHref(join(path, item.name)), title: item.name}, clipped(item.name)), stat && kindBadge(stat)]),
      stat && [cell(1, stat.numChildren > 0 && count(stat.numChildren)), cell(2, bytes(stat.dataLength)), cell(3, stat.version), cell(4, time(stat.mtime))]);
  }

  const filter = filterBox(debounce(150, async (text) => {
    const next = new Pages(path, text);
    pages = next;
    order = null;
    selected.clear();
    await next.more().catch(() => null);
    if (pages === next) {
      list.element.scrollTop = 0;
      draw();
    }
  }), {placeholder: 'Begins with …', label: 'Children whose name begins with'});

  const first = pages.more().then(() => {
    draw();
    return pages;
  });
  first.catch(() => null);

  return {
    element: h('section', {'aria-label': 'Children'}, h('header', {class: 'data-head'}, title, h('span', {class: 'spring'}), filter), bar, progress, table, note),
    first,
    get pages() {
      return pages;
    },
    async reload() {
      if (sorting) {
        return pages;
      }
      const added = await pages.reload();
      added.forEach((name) => fresh.add(name));
      const still = new Set(pages.items.map((item) => item.name));
      [...selected.keys()].forEach((name) => still.has(name) || pages.complete === false || selected.delete(name));
      if (order && pages.total > bigPage) {
        order = null; // the server's again: so long a list is not read as a whole at each change
      }
      while (order && !pages.complete) {
        await pages.more(pages.total);
      }
      draw();
      return pages;
    },
    close: list.close,
  };
}
