// The children of a znode, page by page. The tree and the table of children share it.
import * as api from './api.js';

export const pageSize = 200;
export const bigPage = 1000; // when a person has scrolled beyond what is loaded

/**
 * Pages holds the children that were read so far, ordered by name: items from the first on, and those of
 * a window far behind them, where a person looks who has scrolled to the end.
 */
export class Pages {
  constructor(path, prefix = '') {
    this.path = path;
    this.prefix = prefix;
    this.items = []; // {name, stat}
    this.window = {from: 0, items: []};
    this.total = 0; // also of those that are not read yet; of a prefix: of those that are
    this.next = undefined; // where the next page begins; null after the last one
    this.stat = null;
    this.reading = null;
  }

  get complete() {
    return this.next === null;
  }

  /** item returns the child with an index, undefined if it was not read. */
  item(i) {
    return this.items[i] || this.window.items[i - this.window.from];
  }

  /** read returns all children that were read. */
  get read() {
    return [...this.items, ...this.window.items];
  }

  has(name) {
    return this.read.some((item) => item.name === name);
  }

  /** show reads the page that has the child with an index; it may be a window. */
  show(i) {
    const missing = i + 1 - this.items.length;
    if (missing <= bigPage || this.complete) {
      return this.more(missing);
    }
    this.reading ||= this.#readWindow(Math.max(this.items.length, i - pageSize / 2)).finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  /** more reads the next page. missing says how many rows are wanted beyond the last one. */
  more(missing = 0) {
    if (this.complete) {
      return Promise.resolve();
    }
    this.reading ||= this.#read({after: this.next, limit: missing > 2 * pageSize ? bigPage : pageSize}).then((page) => {
      this.items = this.items.concat(page.children.map(slim));
      this.#took(page);
    }).finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  /** reload reads again as many children as there are, at most a big page; returns names that are new. */
  async reload() {
    await this.reading;
    const limit = Math.min(Math.max(pageSize, this.items.length), bigPage);
    const page = await this.#read({limit});
    const had = new Set(this.items.map((item) => item.name));
    const added = page.children.filter((c) => !had.has(c.name)).map((c) => c.name);
    this.items = page.children.map(slim);
    this.#took(page);
    if (this.window.items.length > 0 && !this.complete) {
      await this.#readWindow(Math.max(this.window.from, this.items.length));
    }
    return added;
  }

  #read(query) {
    return api.children(this.path, {prefix: this.prefix || null, ...query});
  }

  async #readWindow(from) {
    const last = this.items.length;
    const page = await this.#read({after: this.items[last - 1]?.name, skip: from - last, limit: pageSize});
    this.window = {from, items: page.children.map(slim)};
    this.total = page.next ? Math.max(page.stat.numChildren, from + page.children.length + 1) : from + page.children.length;
    this.stat = page.stat;
  }

  #took(page) {
    this.next = page.next ?? null;
    this.stat = page.stat;
    this.total = this.complete || this.prefix ? this.items.length : Math.max(page.stat.numChildren, this.items.length + 1);
  }
}

// slim keeps of a Stat what lists show: a parent may have 100,000 children.
function slim({name, stat}) {
  if (!stat) {
    return {name};
  }
  const {czxid, mtime, version, dataLength, numChildren, ephemeralOwner, kind, ttlMs} = stat;
  return {name, stat: {czxid, mtime, version, dataLength, numChildren, ephemeralOwner: ephemeralOwner === '0x0' ? '' : ephemeralOwner, kind, ttlMs}};
}
