// The children of the open znode, as a list that reads pages while a person scrolls.
import {debounce, empty, h, problem} from './dom.js';
import {bytes, clipped, count, join, time, znodeHref} from './format.js';
import {filterBox, virtualList} from './list.js';
import {Pages} from './pages.js';
import {kindBadge} from './tree.js';

const rowHeight = 28;
const maxShown = 14; // rows in sight before the list scrolls

/** childTable reads the first page at once: first is its promise. */
export function childTable(path) {
  let pages = new Pages(path);
  const fresh = new Set();
  const title = h('h2', null, 'Children');
  const note = h('div');
  const list = virtualList({
    count: () => pages.total, row, rowHeight,
    props: {class: 'child-list', tabindex: '-1', role: 'list', 'aria-label': 'Children'},
    onvisible: (_, last) => last > pages.items.length && !pages.complete && !pages.reading && read(last - pages.items.length),
  });

  async function read(missing) {
    try {
      await pages.more(missing);
    } catch (error) {
      note.replaceChildren(problem(error, () => read(missing)));
      return;
    }
    draw();
  }

  function draw() {
    title.textContent = 'Children ' + (pages.prefix ? '(' + count(pages.items.length) + (pages.complete ? '' : '+') + ' match)' : '');
    note.replaceChildren(...(pages.items.length === 0 && pages.prefix ? [empty('No child begins with “' + pages.prefix + '”')] : []));
    list.element.style.height = Math.min(maxShown, Math.max(1, pages.total)) * rowHeight + 'px';
    list.element.hidden = pages.items.length === 0;
    list.refresh();
  }

  function row(i) {
    const item = pages.items[i];
    if (!item) {
      return h('div', {class: 'child-row', role: 'listitem'}, h('span', {class: 'bone'}));
    }
    const flash = fresh.delete(item.name);
    return h('div', {class: 'child-row' + (flash ? ' flash' : ''), role: 'listitem', 'aria-posinset': i + 1, 'aria-setsize': pages.total},
      h('a', {class: 'mono clips', href: znodeHref(join(path, item.name)), title: item.name}, clipped(item.name)),
      item.stat && [kindBadge(item.stat), h('span', {class: 'spring'}),
        item.stat.numChildren > 0 && h('span', {class: 'dim hide-narrow'}, count(item.stat.numChildren) + (item.stat.numChildren === 1 ? ' child' : ' children')),
        h('span', {class: 'num child-size'}, bytes(item.stat.dataLength)), h('span', {class: 'num dim hide-narrow child-version'}, 'v' + item.stat.version),
        h('span', {class: 'dim hide-narrow child-time'}, time(item.stat.mtime))]);
  }

  const filter = filterBox(debounce(150, async (text) => {
    const next = new Pages(path, text);
    pages = next;
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
    element: h('section', {'aria-label': 'Children'}, h('header', {class: 'data-head'}, title, h('span', {class: 'spring'}), filter), list.element, note),
    first,
    get pages() {
      return pages;
    },
    async reload() {
      const added = await pages.reload();
      added.forEach((name) => fresh.add(name));
      draw();
      return pages;
    },
    close: list.close,
  };
}
