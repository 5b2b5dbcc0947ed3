// A list that only has elements for the rows in sight, and a table with sorting and a filter.
import {empty, h, icon, replace} from './dom.js';

// Browsers limit the height of an element (Firefox to 17.9 million pixels).
const maxRows = 600000;

/**
 * virtualList shows count() rows of one height: row(i) returns the element of a row. props are those
 * of the scrolling element. Returns {element, refresh, reveal, first, last}.
 */
export function virtualList({count, row, rowHeight = 28, props = {}, onvisible}) {
  const space = h('div', {class: 'vspace', role: 'presentation'});
  const element = h('div', {...props, class: 'vlist ' + (props.class || '')}, space);
  let first = 0;
  let last = 0;
  let frame = 0;
  const draw = () => {
    frame = 0;
    const total = Math.min(count(), maxRows);
    space.style.height = total * rowHeight + 'px';
    const height = element.clientHeight || 600;
    first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - 8);
    last = Math.min(total, Math.ceil((element.scrollTop + height) / rowHeight) + 8);
    const rows = [];
    for (let i = first; i < last; i++) {
      const r = row(i);
      r.style.top = i * rowHeight + 'px';
      rows.push(r);
    }
    space.replaceChildren(...rows);
    onvisible?.(first, last);
  };
  const refresh = () => {
    if (!frame) {
      frame = requestAnimationFrame(draw);
    }
  };
  element.addEventListener('scroll', refresh, {passive: true});
  const resized = new ResizeObserver(refresh);
  resized.observe(element);
  return {
    element, refresh, draw,
    reveal(i) {
      const top = i * rowHeight;
      if (top < element.scrollTop) {
        element.scrollTop = top - rowHeight;
      } else if (top + rowHeight > element.scrollTop + element.clientHeight) {
        element.scrollTop = top + 2 * rowHeight - element.clientHeight;
      }
      refresh();
    },
    visible: () => [first, last],
    close: () => resized.disconnect(),
  };
}

/**
 * table shows rows: columns are [{key, title, value(row), cell(row), align: 'right', hide: 'small'}].
 * value gives what sorting and the filter use (default: row[key]), cell gives what is shown (default:
 * value). onopen(row) runs for a click or Enter on a row. More than step rows appear on demand: fewer
 * on a phone, so that what is below the table is in reach. There numbers that are 0 are left out.
 * Returns {element, set(rows), filter(text), rows()}.
 */
export function table({columns, rows = [], caption, sort = null, descending = false, onopen, emptyTitle = 'Nothing here', emptyText = '', step = innerWidth < 560 ? 40 : 300}) {
  let all = rows;
  let text = '';
  let limit = step;
  const value = (column, row) => (column.value ? column.value(row) : row[column.key]);
  const body = h('tbody');
  const note = h('div', {class: 'table-note'});
  const heads = columns.map((column) => h('th', {scope: 'col', class: cls(column)},
    !column.title ? h('span', {class: 'offscreen'}, column.key) : h('button', {type: 'button', class: 'sort', onclick: () => {
      descending = sort === column.key ? !descending : column.align === 'right';
      sort = column.key;
      draw();
    }}, column.title, icon('chevron'))));
  const shown = () => {
    let list = all;
    if (text) {
      list = list.filter((row) => columns.some((c) => String(value(c, row) ?? '').toLowerCase().includes(text)));
    }
    const column = columns.find((c) => c.key === sort);
    if (column) {
      list = [...list].sort((a, b) => (descending ? -1 : 1) * compare(value(column, a), value(column, b)));
    }
    return list;
  };
  const draw = () => {
    columns.forEach((c, i) => {
      if (c.key === sort) {
        heads[i].setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      } else {
        heads[i].removeAttribute('aria-sort');
      }
    });
    const list = shown();
    replace(body, list.slice(0, limit).map((row) => line(row)));
    body.parentElement.hidden = all.length === 0;
    if (all.length === 0) {
      replace(note, empty(emptyTitle, emptyText));
    } else if (list.length === 0) {
      replace(note, empty('No match', 'None of the ' + all.length + ' rows contains “' + text + '”.'));
    } else if (list.length > limit) {
      replace(note, h('button', {type: 'button', class: 'button', onclick: () => {
        limit += 4 * step;
        draw();
      }}, 'Show more (' + (list.length - limit) + ' left)'));
    } else {
      replace(note);
    }
  };
  const line = (row) => h('tr', onopen && {
    tabindex: '0', class: 'opens', onclick: (e) => e.target.closest('a, button') || onopen(row),
    onkeydown: (e) => e.key === 'Enter' && e.target.tagName === 'TR' && onopen(row),
  }, columns.map((c) => h('td', {class: cls(c) + (c.align && value(c, row) === 0 ? 'zero' : ''), 'data-label': c.title}, c.cell ? c.cell(row) : value(c, row) ?? '')));
  const element = h('div', {class: 'table-wrap'},
    h('table', null, caption && h('caption', {class: 'offscreen'}, caption), h('thead', null, h('tr', null, heads)), body), note);
  draw();
  return {
    element,
    rows: shown,
    set(next) {
      all = next;
      draw();
    },
    filter(next) {
      text = next.trim().toLowerCase();
      draw();
    },
  };
}

function cls(column) {
  return (column.align === 'right' ? 'num ' : '') + (column.hide ? 'hide-' + column.hide + ' ' : '') + (column.class || '');
}

/** compare orders numbers as numbers, text as people do (a2 before a10), and missing values first. */
export function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') {
    return a - b;
  }
  return String(a ?? '').localeCompare(String(b ?? ''), 'en', {numeric: true});
}

/** filterBox is an input that calls onfilter while a person types. */
export function filterBox(onfilter, {placeholder = 'Filter', value = '', label = placeholder} = {}) {
  return h('input', {type: 'search', class: 'filter', placeholder, value, 'aria-label': label,
    oninput: (e) => onfilter(e.target.value)});
}
