// The tree of znodes: children are read when a znode is unfolded, rows exist only while in sight.
import {badge, h, icon} from './dom.js';
import {ago, base, bytes, clipped, compact, count, duration, join, parent, znodeHref} from './format.js';
import {virtualList} from './list.js';
import {Pages, pageSize} from './pages.js';

const rowHeight = 26;

class TreeNode {
  constructor(path, name, depth, stat) {
    this.path = path;
    this.name = name;
    this.depth = depth;
    this.stat = stat;
    this.open = false;
    this.pages = null;
    this.children = null; // a Map from names to TreeNodes, kept while the znode is folded
    this.pinned = null; // a name beyond the pages that were read, to which an address led: shown first
    this.error = null;
    this.placeholder = null; // the row of a child that is not read yet
    this.flash = false;
  }

  child(name, stat) {
    this.children ||= new Map();
    let node = this.children.get(name);
    if (!node) {
      node = new TreeNode(join(this.path, name), name, this.depth + 1, stat);
      this.children.set(name, node);
    }
    node.stat = stat || node.stat;
    return node;
  }
}

/**
 * tree shows the znodes. onopen(path) runs when a person opens one, onread(text) tells of long lists.
 * In the past lists have no Stats, so whether a znode has children is known when it was unfolded.
 */
export function tree({onopen, onread, past = false}) {
  const root = new TreeNode('/', '/', 0, null);
  let rows = []; // TreeNode, or the gap of a TreeNode: children which are not read yet
  let selected = '/';
  let cursor = '/';
  const dirty = new Set();
  let dirtyTimer = 0;
  let reloadCost = 0; // ms that the last reload took: under many changes reloads become rarer

  const list = virtualList({
    count: () => rows.length, row: (i) => draw(rows[i], i), rowHeight,
    props: {class: 'tree', role: 'tree', tabindex: '0', 'aria-label': 'Znodes', onkeydown: onkey},
    onvisible: fillGaps,
  });

  function flatten() {
    const out = [];
    const visit = (node) => {
      out.push(node);
      if (!node.open) {
        return;
      }
      if (node.error) {
        out.push({failed: node});
        return;
      }
      if (!node.pages) {
        return;
      }
      if (pinnedFirst(node)) {
        visit(node.children.get(node.pinned));
      }
      for (let i = 0; i < node.pages.total; i++) {
        const item = node.pages.item(i);
        if (!item) {
          out.push(node.placeholder ||= {gap: node});
          continue;
        }
        const child = node.child(item.name, null);
        child.stat ||= item.stat; // which is older than what an event or the znode's own page told
        visit(child);
      }
    };
    visit(root);
    rows = out;
    list.refresh();
  }

  // pinnedFirst reports whether a child is shown before the others, because its place was not read.
  function pinnedFirst(node) {
    return node.children?.has(node.pinned) && !node.pages.complete && !node.pages.has(node.pinned);
  }

  function fillGaps(first, last) {
    for (let i = last - 1; i >= first; i--) {
      const node = rows[i]?.gap;
      if (node) {
        const before = rows.slice(rows.indexOf(node) + 1, i).filter((row) => row.gap === node || row.depth === node.depth + 1);
        read(node, before.length - (pinnedFirst(node) ? 1 : 0));
        break;
      }
    }
  }

  async function read(node, i = 0) {
    node.pages ||= new Pages(node.path);
    if (node.pages.reading && node.pages.items.length > 0) {
      return;
    }
    try {
      await node.pages.show(i);
      node.error = null;
      node.stat = node.pages.stat || node.stat;
    } catch (error) {
      node.error = error;
    }
    const {items, total, complete} = node.pages;
    onread(complete || items.length <= pageSize ? '' : count(items.length) + ' of ' + count(total) + ' read');
    flatten();
  }

  async function unfold(node) {
    node.open = true;
    if (!node.pages || node.error) {
      node.pages = null;
      await read(node);
    } else {
      flatten();
    }
  }

  function fold(node) {
    node.open = false;
    flatten();
  }

  function toggle(node) {
    return node.open ? fold(node) : unfold(node);
  }

  function draw(row, i) {
    if (row.gap) {
      return h('div', {class: 'tree-row gap', role: 'presentation'}, indent(row.gap.depth + 1), h('span', {class: 'bone'}));
    }
    if (row.failed) {
      return h('div', {class: 'tree-row bad', role: 'presentation'}, indent(row.failed.depth + 1), row.failed.error.message);
    }
    const node = row;
    const many = node.stat?.numChildren ?? node.pages?.total ?? 0;
    const folds = foldable(node);
    const element = h('div', {
      class: 'tree-row' + (node.path === cursor ? ' cursor' : '') + (node.flash ? ' flash' : ''), role: 'treeitem', id: 'tree-' + i,
      'aria-level': node.depth + 1, 'aria-expanded': folds ? String(node.open) : null, 'aria-selected': String(node.path === selected),
      onclick: (e) => {
        if (e.target.closest('.twist')) {
          toggle(node);
          return;
        }
        if (!e.ctrlKey && !e.metaKey) {
          e.preventDefault();
          cursor = node.path;
          onopen(node.path);
        }
      },
      ondblclick: () => folds && toggle(node),
    },
    indent(node.depth),
    h('span', {class: 'twist' + (node.open ? ' open' : ''), 'aria-hidden': 'true'}, folds && icon('chevron')),
    h('a', {class: 'tree-name', href: znodeHref(node.path), tabindex: '-1', title: tip(node)}, clipped(node.name)),
    node.stat ? kindBadge(node.stat) : !past && listed(node) && h('span', {class: 'dim', title: 'The ACL does not let you read this znode'}, icon('lock')), many > 0 && h('span', {class: 'tree-count', title: count(many) + ' children'}, compact(many)));
    if (node.path === cursor) {
      list.element.setAttribute('aria-activedescendant', 'tree-' + i);
    }
    node.flash = false;
    return element;
  }

  // listed reports whether the parent's list has the znode: without a Stat it may not be read then.
  function listed(node) {
    const above = node !== root && find(parent(node.path));
    return Boolean(above?.pages?.has(node.name));
  }

  function foldable(node) {
    return node === root || (past && !(node.pages?.complete && node.pages.items.length === 0)) || (node.stat?.numChildren ?? node.pages?.total ?? 0) > 0;
  }

  function index(path) {
    return rows.findIndex((row) => row.path === path);
  }

  function move(by) {
    let i = index(cursor);
    i = i < 0 ? 0 : i + by;
    while (rows[i] && !(rows[i] instanceof TreeNode)) {
      i += by;
    }
    if (rows[i]) {
      cursor = rows[i].path;
      list.reveal(i);
    }
  }

  // Left folds, or goes up; right unfolds, or goes down.
  function left() {
    const node = rows[index(cursor)];
    if (node?.open) {
      fold(node);
    } else if (node && node !== root) {
      cursor = parent(node.path);
      list.reveal(index(cursor));
    }
  }

  function right() {
    const node = rows[index(cursor)];
    if (!node) {
      return;
    }
    if (node.open) {
      move(1);
    } else if (foldable(node)) {
      unfold(node);
    }
  }

  function onkey(event) {
    const keys = {ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowLeft: left, ArrowRight: right,
      Home: () => edge(0), End: () => edge(rows.length - 1), PageDown: () => page(1), PageUp: () => page(-1)};
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      keys[event.key]();
      event.preventDefault();
    }
  }

  function edge(i) {
    if (rows[i]) {
      cursor = rows[i].path || cursor;
      list.reveal(i);
    }
  }

  function page(by) {
    const n = Math.max(1, Math.floor(list.element.clientHeight / rowHeight) - 1);
    edge(Math.min(rows.length - 1, Math.max(0, index(cursor) + by * n)));
  }

  /** select marks a znode and unfolds everything above. */
  async function select(path) {
    selected = path;
    cursor = path;
    let node = root;
    const names = path.split('/').filter(Boolean);
    for (const name of names) {
      if (!node.open) {
        await unfold(node);
      } else {
        await node.pages?.reading;
      }
      if (selected !== path) {
        return;
      }
      if (node.error) {
        break;
      }
      if (!node.children?.has(name) && !node.pages?.has(name)) {
        if (node.pages?.complete) {
          break;
        }
        node.pinned = name;
        node.child(name, null);
      } else if (!node.pages?.has(name)) {
        node.pinned = name;
      }
      node = node.child(name, null);
    }
    if (path === '/' && !root.open) {
      await unfold(root);
    }
    flatten();
    list.draw();
    const i = index(path);
    if (i >= 0) {
      list.reveal(i);
    }
  }

  function find(path) {
    let node = root;
    for (const name of path.split('/').filter(Boolean)) {
      node = node?.children?.get(name);
    }
    return node;
  }

  /** touch shows that something happened to a znode; children of it may have come or gone. */
  function touch(path, kind) {
    const node = find(path);
    if (node && kind === 'changed') {
      node.flash = true;
      list.refresh();
    }
    const above = kind === 'children' ? path : parent(path);
    if (kind === 'created' || kind === 'deleted') {
      const stat = find(above)?.stat;
      if (stat) {
        // Until the next answer with a Stat; a folded znode is not read again.
        stat.numChildren = Math.max(0, stat.numChildren + (kind === 'created' ? 1 : -1));
        list.refresh();
      }
    }
    if (kind !== 'changed' && find(above)?.pages) {
      dirty.add(above);
      dirtyTimer ||= setTimeout(reloadDirty, Math.max(250, 5 * reloadCost));
    }
  }

  /** update takes over a newer Stat that somebody else has read. */
  function update(path, stat) {
    const node = find(path);
    if (node) {
      node.stat = stat;
      list.refresh();
    }
  }

  async function reloadDirty() {
    const paths = [...dirty];
    dirty.clear();
    const began = performance.now();
    for (const path of paths) {
      const node = find(path);
      if (!node?.pages) {
        continue;
      }
      try {
        const added = await node.pages.reload();
        const names = new Set(node.pages.read.map((item) => item.name));
        for (const name of node.children?.keys() || []) {
          if (!names.has(name) && (node.pages.complete || name !== node.pinned)) {
            node.children.delete(name);
          }
        }
        for (const item of node.pages.read) {
          node.child(item.name, item.stat);
        }
        for (const name of added) {
          node.children.get(name).flash = true;
        }
        node.stat = node.pages.stat;
      } catch (error) {
        if (error.missing) {
          find(parent(path))?.children?.delete(base(path));
        }
      }
    }
    reloadCost = performance.now() - began;
    dirtyTimer = 0;
    flatten();
  }

  return {
    element: list.element, select, move, left, right, touch, update,
    cursor: () => cursor,
    /** reload reads again what is unfolded. */
    reload() {
      const visit = (node) => {
        if (node.pages) {
          dirty.add(node.path);
        }
        node.children?.forEach(visit);
      };
      visit(root);
      reloadDirty();
    },
    close: () => {
      clearTimeout(dirtyTimer);
      list.close();
    },
  };
}

function indent(depth) {
  return h('span', {class: 'indent', style: {width: 14 * depth + 'px'}});
}

function tip(node) {
  const s = node.stat;
  return s ? [node.path, bytes(s.dataLength) + ', ' + count(s.numChildren) + ' children', 'version ' + s.version + ', changed ' + ago(s.mtime)].join('\n') : node.path;
}

/** isEphemeral tells from a stat whether the znode belongs to a session. */
export function isEphemeral(stat) {
  return !stat.kind && Boolean(stat.ephemeralOwner) && !/^(0x)?0*$/.test(stat.ephemeralOwner);
}

/** kindBadge returns the small letter of an ephemeral, container or TTL znode, or null. */
export function kindBadge(stat) {
  if (isEphemeral(stat)) {
    return badge('E', 'accent', 'Ephemeral: ends with session ' + stat.ephemeralOwner);
  }
  if (stat.kind === 'container') {
    return badge('C', '', 'Container: removed after its last child');
  }
  if (stat.kind === 'ttl') {
    return badge('T', 'warn', 'TTL of ' + duration(stat.ttlMs) + ' without children and changes');
  }
  return null;
}
